// The search of the two books. Loaded after Sphinx's search tools, whose results it ranks and sifts:
// pages of the research part are left out unless the address says `research=on`; a title with more
// words of the query comes first, most of all one that has them in their order, and pages of the
// guide come before single functions, examples and the pages for contributors.
const RESEARCH =
  /^(research|papers|theorems|proofs|evidence|defaults|benchmarks|real_tables|lower_bound|risk_bounds|generated\/research)(\/|$)/;
const LATER = /^(generated\/|gallery\/|project|architecture|contributing|changes)/;
const withResearch = () => /[?&]research=on/.test(window.location.search);
let asked = [];
let question = "";

var Scorer = {
  score: (result) => {
    const [page, title, , , score] = result;
    const named = asked.filter((word) => title.toLowerCase().includes(word)).length;
    const isWhole = asked.length > 1 && title.toLowerCase().includes(question);
    const isLater = LATER.test(page) || RESEARCH.test(page);
    return score + 4 * named + (isWhole ? 20 : 0) - (isLater ? 4 : 0);
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

const ofBothBooks = Search._performSearch;
Search._performSearch = (query, ...terms) => {
  question = query.toLowerCase().trim();
  asked = question.split(/\s+/).filter((word) => word.length > 2);
  const found = ofBothBooks(query, ...terms);
  return withResearch() ? found : found.filter(([page]) => !RESEARCH.test(page));
};

document.addEventListener("DOMContentLoaded", () => {
  const results = document.getElementById("search-results");
  const given = new URLSearchParams(window.location.search);
  if (!results || !given.get("q")) return;
  const said = document.createElement("p");
  said.append(withResearch() ? "All pages. " : "The user's book. ");
  const link = document.createElement("a");
  link.textContent = withResearch()
    ? "Leave out research"
    : "Include research: papers, proofs, measurements";
  withResearch() ? given.delete("research") : given.set("research", "on");
  link.href = `?${given}`;
  said.append(link);
  results.before(said);
});
