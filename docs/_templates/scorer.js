// Ranks results of the search: pages to learn from come before proofs and single functions, and a
// title with more words of the query before one with fewer.
var Scorer = {
  score: (result) => {
    const [page, title, , , score] = result;
    const query = new URLSearchParams(window.location.search).get("q") || "";
    const words = query.toLowerCase().split(/\s+/).filter((word) => word.length > 2);
    const named = words.filter((word) => title.toLowerCase().includes(word)).length;
    const isForUsers = /^(start|guide|tutorials|choosing_epsilon|planning|index|command|estimators)/;
    const isForAuditors = /^(proofs|generated|papers|defaults|evidence|benchmarks)/;
    return score + 4 * named + (isForUsers.test(page) ? 2 : 0) - (isForAuditors.test(page) ? 2 : 0);
  },
  // The values below are those of Sphinx.
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
