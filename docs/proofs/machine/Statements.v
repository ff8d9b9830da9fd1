(** What is proved: definitions and statements alone. The proofs are in the other files.

    Every definition here is frozen by a digest of its text. *)
From Coq Require Import Reals String List ZArith Permutation.
From Flocq Require Import Core.
From Machine Require Import Formulas.
Import ListNotations.
Open Scope R_scope.

(** ** Vectors, indexed by any finite list of places *)

Fixpoint sum {I : Type} (places : list I) (f : I -> R) : R :=
  match places with
  | [] => 0
  | i :: rest => f i + sum rest f
  end.

Definition range (n : nat) : list nat := seq 0 n.

(** The places of a matrix with the given rows and columns. *)
Definition grid (n m : nat) : list (nat * nat) := list_prod (range n) (range m).

Definition dot {I : Type} (places : list I) (u v : I -> R) : R :=
  sum places (fun i => u i * v i).

Definition norm {I : Type} (places : list I) (u : I -> R) : R := sqrt (dot places u u).

Definition absolute {I : Type} (places : list I) (u : I -> R) : R :=
  sum places (fun i => Rabs (u i)).

Definition minus {I : Type} (u v : I -> R) : I -> R := fun i => u i - v i.

(** ** Data

    A unit of privacy is a record or a person. It has some rows, and a share for each of them: one
    for a record, the weight of a record with a weight, one over the number of rows for a person. *)

Record unit_of (row : Type) := {
  size : nat;
  row_at : nat -> row;
  share : nat -> R
}.
Arguments size {row}.
Arguments row_at {row}.
Arguments share {row}.

Definition valid {row : Type} (u : unit_of row) : Prop :=
  (forall j, (j < size u)%nat -> 0 <= share u j) /\ sum (range (size u)) (share u) <= 1.

(** A data set of a public number of units has one at each place. Neighbours differ at one place,
    in the unit with all its rows and shares. *)
Definition data (row : Type) : Type := nat -> unit_of row.

Definition all_valid {row : Type} (n : nat) (S : data row) : Prop :=
  forall i, (i < n)%nat -> valid (S i).

Definition neighbours {row : Type} (n : nat) (S S' : data row) : Prop :=
  exists k, (k < n)%nat /\ forall i, (i < n)%nat -> i <> k -> S i = S' i.

(** A question is a vector for each row, which may depend on the place of the unit and on the number
    of the row within the unit. A unit contributes the sum over its rows by their shares. *)
Definition question (row I : Type) : Type := nat -> nat -> row -> I -> R.

Definition contribution {row I : Type} (f : question row I) (place : nat) (u : unit_of row) : I -> R :=
  fun x => sum (range (size u)) (fun j => share u j * f place j (row_at u j) x).

Definition total {row I : Type} (n : nat) (f : question row I) (S : data row) : I -> R :=
  fun x => sum (range n) (fun i => contribution f i (S i) x).

(** The change of an answer between two data sets. *)
Definition change {row I : Type} (n : nat) (f : question row I) (S S' : data row) : I -> R :=
  minus (total n f S) (total n f S').

(** ** 1. Sums *)

(** Replacing a unit moves a sum of vectors of norm at most c by at most 2 c. *)
Definition replace_one_sum : Prop :=
  forall (row I : Type) (places : list I) (f : question row I) (c : R),
    0 <= c ->
    (forall i j r, norm places (f i j r) <= c) ->
    forall n S S', all_valid n S -> all_valid n S' -> neighbours n S S' ->
      norm places (change n f S S') <= 2 * c.

(** Replacing a unit moves a sum of numbers in [0, 1] by at most one. *)
Definition replace_one_count : Prop :=
  forall (row : Type) (f : nat -> nat -> row -> R),
    (forall i j r, 0 <= f i j r <= 1) ->
    forall n S S', all_valid n S -> all_valid n S' -> neighbours n S S' ->
      Rabs (change n (fun i j r (_ : Datatypes.unit) => f i j r) S S' tt) <= value one_count [].

(** The squared length of a row over that of the public unit, at most one, rounded down to a
    multiple of 2^-16. Replacing a unit moves the sum by at most one, whatever x is. *)
Definition length_steps (x : R) : R := IZR (Int_part (Rmin x 1 * 65536)) / 65536.

Definition replace_one_length : Prop :=
  forall (row : Type) (x : nat -> nat -> row -> R),
    (forall i j r, 0 <= x i j r) ->
    forall n S S', all_valid n S -> all_valid n S' -> neighbours n S S' ->
      Rabs (change n (fun i j r (_ : Datatypes.unit) => length_steps (x i j r)) S S' tt)
        <= value squared_lengths [].

(** A row is counted in one cell of each column, or in none. The counts of all columns are one
    vector. Classes are the cells of one column. *)
Definition is_cell (found : option nat) (cell : nat) : R :=
  match found with
  | None => 0
  | Some a => if Nat.eqb a cell then 1 else 0
  end.

Definition in_cells {row : Type} (cell : nat -> nat -> row -> nat -> option nat) :
  question row (nat * nat) :=
  fun i j r place => is_cell (cell i j r (fst place)) (snd place).

Definition replace_one_counts : Prop :=
  forall (row : Type) (cell : nat -> nat -> row -> nat -> option nat) (columns cells : nat),
    forall n S S', all_valid n S -> all_valid n S' -> neighbours n S S' ->
      norm (grid columns cells) (change n (in_cells cell) S S')
        <= value counts [("columns"%string, INR columns)]
      /\ absolute (grid columns cells) (change n (in_cells cell) S S')
        <= value counts_absolute [("columns"%string, INR columns)].

(** The second moment of rows of norm at most one. *)
Definition square {row : Type} (a : nat -> nat -> row -> nat -> R) : question row (nat * nat) :=
  fun i j r place => a i j r (fst place) * a i j r (snd place).

Definition replace_one_moment : Prop :=
  forall (row : Type) (columns : nat) (a : nat -> nat -> row -> nat -> R),
    (forall i j r, norm (range columns) (a i j r) <= 1) ->
    forall n S S', all_valid n S -> all_valid n S' -> neighbours n S S' ->
      norm (grid columns columns) (change n (square a) S S') <= value second_moment [].

(** The upper triangle, entries off the diagonal times the root of two, has the norm of the whole
    symmetric matrix. *)
Definition upper (n : nat) : list (nat * nat) :=
  filter (fun place => Nat.leb (fst place) (snd place)) (grid n n).

Definition packed (M : nat * nat -> R) : nat * nat -> R :=
  fun place => M place * (if Nat.eqb (fst place) (snd place) then 1 else sqrt 2).

Definition packed_norm : Prop :=
  forall (n : nat) (M : nat * nat -> R),
    (forall i j, M (i, j) = M (j, i)) -> norm (upper n) (packed M) = norm (grid n n) M.

(** Shares of the rows of a person: one over their number, rounded down to a multiple of 2^-q. *)
Definition person_share (q : nat) (rows : nat) : R :=
  IZR (2 ^ Z.of_nat q / Z.of_nat rows) / 2 ^ q.

Definition person_is_valid : Prop :=
  forall (row : Type) (q k : nat) (rows : nat -> row),
    (0 < k)%nat -> valid {| size := k; row_at := rows; share := fun _ => person_share q k |}.

Definition weighted_record_is_valid : Prop :=
  forall (row : Type) (w : R) (r : row),
    0 <= w <= 1 -> valid {| size := 1; row_at := fun _ => r; share := fun _ => w |}.

(** ** 2. Rows of norm at most one, and clipped gradients *)

Definition scaled {I : Type} (c : R) (u : I -> R) : I -> R := fun i => c * u i.

(** A row that is scaled down to a norm. *)
Definition clipped {I : Type} (places : list I) (longest : R) (u : I -> R) : I -> R :=
  scaled (Rmin 1 (longest / norm places u)) u.

Definition clipped_norm : Prop :=
  forall (I : Type) (places : list I) (longest : R) (u : I -> R),
    0 <= longest -> norm places (clipped places longest u) <= longest.

(** A row with a constant behind its columns. *)
Definition with_constant (columns : nat) (u : nat -> R) (c : R) : nat -> R :=
  fun j => if Nat.ltb j columns then u j else c.

(** First rows: clipped to norm one, with a constant, over the norm that the constant gives. *)
Definition first_row (columns : nat) (c : R) (x : nat -> R) : nat -> R :=
  scaled (/ sqrt (1 + c ^ 2)) (with_constant columns (clipped (range columns) 1 x) c).

Definition first_row_norm : Prop :=
  forall (columns : nat) (c : R) (x : nat -> R),
    norm (range (1 + columns)) (first_row columns c x) <= 1.

(** Final rows: images under any map, clipped to the radius, with a constant, over the length. *)
Definition final_row (columns : nat) (radius c : R) (image : nat -> R) : nat -> R :=
  scaled (/ Rmax (sqrt (radius ^ 2 + c ^ 2)) 1)
    (with_constant columns (clipped (range columns) radius image) c).

Definition final_row_norm : Prop :=
  forall (columns : nat) (radius c : R) (image : nat -> R),
    0 <= radius -> norm (range (1 + columns)) (final_row columns radius c image) <= 1.

(** The slope of a record of two classes at its score, y being its sign: y / (1 + exp(y s)), at most
    one half. *)
Definition slope_of_two (y s : R) : R := y / Rmax (1 + exp (Rmin (y * s) 40)) 2.

(** The slopes of a record of class y at its scores s: clipped to the root of one half. *)
Definition softmax (classes : nat) (s : nat -> R) : nat -> R :=
  fun k => exp (s k) / sum (range classes) (fun j => exp (s j)).

Definition indicator (y : nat) : nat -> R := fun k => if Nat.eqb k y then 1 else 0.

Definition slopes_of_many (classes y : nat) (s : nat -> R) : nat -> R :=
  let found := minus (indicator y) (softmax classes s) in
  scaled (sqrt (1 / 2) / Rmax (norm (range classes) found) (sqrt (1 / 2))) found.

Definition slope_of_two_clip : Prop :=
  forall y s : R, y = 1 \/ y = -1 -> Rabs (slope_of_two y s) <= value clip_of_two [].

Definition slopes_of_many_clip : Prop :=
  forall (classes y : nat) (s : nat -> R),
    norm (range classes) (slopes_of_many classes y s) <= value clip_of_many [].

(** A row of a record: what the gradient reads of it. *)
Record example := {
  columns_of : nat -> R;
  sign_of : R;
  class_of : nat;
  weight_of : R
}.

Definition short (columns : nat) (rows : nat -> nat -> example -> nat -> R) : Prop :=
  forall i j r, norm (range columns) (rows i j r) <= 1.

(** Weighted slopes times rows, at any point w. The weight of a class is in [0, 1]. *)
Definition gradient_of_two (columns : nat) (rows : nat -> nat -> example -> nat -> R) (w : nat -> R) :
  question example nat :=
  fun i j r x =>
    let z := rows i j r in
    weight_of r * slope_of_two (sign_of r) (dot (range columns) z w) * z x.

Definition gradient_of_many (columns classes : nat) (rows : nat -> nat -> example -> nat -> R)
  (w : nat -> nat -> R) : question example (nat * nat) :=
  fun i j r place =>
    let z := rows i j r in
    weight_of r
    * slopes_of_many classes (class_of r) (fun k => dot (range columns) z (w k)) (snd place)
    * z (fst place).

Definition of_examples (n : nat) (S : data example) : Prop :=
  all_valid n S
  /\ forall i j, (i < n)%nat -> (j < size (S i))%nat ->
       let r := row_at (S i) j in (sign_of r = 1 \/ sign_of r = -1) /\ 0 <= weight_of r <= 1.

Definition replace_one_gradient_of_two : Prop :=
  forall (columns : nat) (rows : nat -> nat -> example -> nat -> R) (w : nat -> R),
    short columns rows ->
    forall n S S', of_examples n S -> of_examples n S' -> neighbours n S S' ->
      norm (range columns) (change n (gradient_of_two columns rows w) S S')
        <= value step_of_two [].

Definition replace_one_gradient_of_many : Prop :=
  forall (columns classes : nat) (rows : nat -> nat -> example -> nat -> R) (w : nat -> nat -> R),
    short columns rows ->
    forall n S S', of_examples n S -> of_examples n S' -> neighbours n S S' ->
      norm (grid columns classes) (change n (gradient_of_many columns classes rows w) S S')
        <= value step_of_many [].

(** ** 3. Moments of columns *)

(** A column contributes s / 2^10 and 3/2 s^2 / 2^20 with a whole number s of at most 2^10 in
    absolute value; a person the mean of s, rounded to zero, and that of s^2, rounded up. *)
Definition whole_sum (k : nat) (s : nat -> Z) : Z := fold_right Z.add 0%Z (map s (range k)).

Definition mean_of (k : nat) (s : nat -> Z) : R := IZR (Z.quot (whole_sum k s) (Z.of_nat k)) / 1024.

Definition mean_square_of (k : nat) (s : nat -> Z) : R :=
  IZR (- (- whole_sum k (fun j => s j * s j)%Z / Z.of_nat k)) / (1024 * 1024).

(** The rows of one unit, without shares. *)
Record rows_of (row : Type) := { n_rows : nat; each_row : nat -> row }.
Arguments n_rows {row}.
Arguments each_row {row}.

Definition column_statistics {row : Type} (n : nat) (s : nat -> nat -> row -> nat -> Z)
  (S : nat -> rows_of row) : nat * bool -> R :=
  fun place => sum (range n) (fun i =>
    let of_column j := s i j (each_row (S i) j) (fst place) in
    if snd place then mean_of (n_rows (S i)) of_column
    else 3 / 2 * mean_square_of (n_rows (S i)) of_column).

Definition replace_one_column_moments : Prop :=
  forall (row : Type) (columns : nat) (s : nat -> nat -> row -> nat -> Z),
    (forall i j r x, (-1024 <= s i j r x <= 1024)%Z) ->
    forall n (S S' : nat -> rows_of row),
      (forall i, (0 < n_rows (S i))%nat /\ (0 < n_rows (S' i))%nat) ->
      (exists k, (k < n)%nat /\ forall i, (i < n)%nat -> i <> k -> S i = S' i) ->
      norm (list_prod (range columns) [true; false])
        (minus (column_statistics n s S) (column_statistics n s S'))
        <= value column_moments [("columns"%string, INR columns)].

(** The nearest whole number of a clipped number is at most 2^10 in absolute value. *)
Definition nearest_of_clipped : Prop :=
  forall (v : R) (s : Z),
    Rabs (IZR s - Rmax (-1024) (Rmin v 1024)) <= 1 / 2 -> (-1024 <= s <= 1024)%Z.

(** ** 4. Choices from a public list, counts, and their composition

    A mechanism gives each outcome a mass, or a density, for each data set. It is pure if no mass
    grows by more than a factor exp(epsilon) between neighbours, in either order. *)

Definition masses (D O : Type) : Type := D -> O -> R.

Definition pure {D O : Type} (near : D -> D -> Prop) (epsilon : R) (M : masses D O) : Prop :=
  forall S S', near S S' ->
    forall o, M S o <= exp epsilon * M S' o /\ M S' o <= exp epsilon * M S o.

(** What holds for each outcome holds for every finite set of them. *)
Definition pure_of_sets : Prop :=
  forall (D O : Type) (near : D -> D -> Prop) epsilon (M : masses D O),
    pure near epsilon M ->
    forall S S', near S S' ->
      forall outcomes : list O, sum outcomes (M S) <= exp epsilon * sum outcomes (M S').

(** A second mechanism may depend on the outcome of the first one. *)
Definition followed {D O P : Type} (first : masses D O) (second : O -> masses D P) :
  masses D (O * P) :=
  fun S o => first S (fst o) * second (fst o) S (snd o).

Definition pure_composition : Prop :=
  forall (D O P : Type) (near : D -> D -> Prop) e1 e2 (first : masses D O) (second : O -> masses D P),
    (forall S o, 0 <= first S o) -> (forall o S p, 0 <= second o S p) ->
    pure near e1 first -> (forall o, pure near e2 (second o)) ->
    pure near (e1 + e2) (followed first second).

(** The exponential mechanism: one of m candidates, proportional to exp(- rate cost). *)
Definition chosen (m : nat) (rate : R) (cost : nat -> Z) (i : nat) : R :=
  exp (- (rate * IZR (cost i))) / sum (range m) (fun j => exp (- (rate * IZR (cost j)))).

Definition moves_by_one (m : nat) (cost cost' : nat -> Z) : Prop :=
  forall i, (i < m)%nat -> (-1 <= cost' i - cost i <= 1)%Z.

(** With whole costs of sensitivity one and half of epsilon as the rate it is pure, and the log ratio
    of its probabilities has at most the range epsilon. *)
Definition exponential_mechanism : Prop :=
  forall m epsilon cost cost', 0 <= epsilon -> moves_by_one m cost cost' ->
    forall i, (i < m)%nat ->
      let rate := value choice_rate [("epsilon"%string, epsilon)] in
      chosen m rate cost i <= exp epsilon * chosen m rate cost' i.

Definition exponential_mechanism_range : Prop :=
  forall m epsilon cost cost', 0 <= epsilon -> moves_by_one m cost cost' ->
    forall i k, (i < m)%nat -> (k < m)%nat ->
      let rate := value choice_rate [("epsilon"%string, epsilon)] in
      chosen m rate cost i * chosen m rate cost' k
        <= exp epsilon * (chosen m rate cost k * chosen m rate cost' i).

(** If all costs move in one direction, the rate may be epsilon. *)
Definition monotone_exponential_mechanism : Prop :=
  forall m epsilon cost cost', 0 <= epsilon ->
    (forall i, (i < m)%nat -> (0 <= cost' i - cost i <= 1)%Z) ->
    forall i, (i < m)%nat ->
      chosen m epsilon cost i <= exp epsilon * chosen m epsilon cost' i
      /\ chosen m epsilon cost' i <= exp epsilon * chosen m epsilon cost i.

(** To draw a cost by the number of its candidates, and then one of these, is the same mechanism. *)
Definition tally (m : nat) (cost : nat -> Z) (c : Z) : nat :=
  length (filter (fun i => Z.eqb (cost i) c) (range m)).

Definition tallied_choice : Prop :=
  forall m rate (cost : nat -> Z) (costs : list Z),
    NoDup costs -> (forall i, (i < m)%nat -> In (cost i) costs) ->
    forall i, (i < m)%nat ->
      INR (tally m cost (cost i)) * exp (- (rate * IZR (cost i)))
        / sum costs (fun c => INR (tally m cost c) * exp (- (rate * IZR c)))
        * / INR (tally m cost (cost i))
      = chosen m rate cost i.

(** Errors of a classifier, weighted by whole numbers up to 2^16 and rounded down, move by one. *)
Definition weighted_errors {record : Type} (n : nat) (weight : record -> Z)
  (wrong : nat -> record -> bool) (S : nat -> record) : Z :=
  (fold_right Z.add 0 (map (fun i => if wrong i (S i) then weight (S i) else 0) (range n)) / 65536)%Z.

Definition errors_move_by_one : Prop :=
  forall (record : Type) n (weight : record -> Z) wrong (S S' : nat -> record),
    (forall r, (0 <= weight r <= 65536)%Z) ->
    (exists k, (k < n)%nat /\ forall i, (i < n)%nat -> i <> k -> S i = S' i) ->
    Rabs (IZR (weighted_errors n weight wrong S) - IZR (weighted_errors n weight wrong S'))
      <= value one_count [].

(** Two choices at once, each from a list of its own, are one choice of a pair by the sum of its
    costs; the pair of i and j has the number i k + j. *)
Definition two_choices : Prop :=
  forall m k epsilon (cost other : nat -> Z) i j, (i < m)%nat -> (j < k)%nat ->
    let rate := value choice_rate [("epsilon"%string, epsilon)] in
    chosen m rate cost i * chosen k rate other j
    = chosen (m * k) rate (fun p => cost (p / k)%nat + other (p mod k)%nat)%Z (i * k + j).

(** Records are divided into groups, and the weighted errors of each group are rounded down. Their sum
    moves by one, also if the replaced record changes its group. *)
Definition errors_of_group {record : Type} (n : nat) (errors : nat -> record -> Z)
  (group : nat -> record -> nat) (S : nat -> record) (g : nat) : Z :=
  (fold_right Z.add 0
     (map (fun i => if Nat.eqb (group i (S i)) g then errors i (S i) else 0) (range n)) / 65536)%Z.

Definition grouped_errors_move_by_one : Prop :=
  forall (record : Type) n groups (errors : nat -> record -> Z) group (S S' : nat -> record),
    (forall i r, (0 <= errors i r <= 65536)%Z) ->
    (exists k, (k < n)%nat /\ forall i, (i < n)%nat -> i <> k -> S i = S' i) ->
    Rabs (sum (range groups) (fun g => IZR (errors_of_group n errors group S g))
          - sum (range groups) (fun g => IZR (errors_of_group n errors group S' g)))
      <= value one_count [].

(** Whole numbers with noise of a mass proportional to exp(- rate |k|) at k, each on its own. *)
Definition with_laplace {I : Type} (places : list I) (rate : R) (exact found : I -> Z) : R :=
  ((1 - exp (- rate)) / (1 + exp (- rate))) ^ length places
  * exp (- (rate * sum places (fun i => Rabs (IZR (found i) - IZR (exact i))))).

(** Counts with such noise are pure if they move by at most the sensitivity, in absolute values. *)
Definition laplace_counts : Prop :=
  forall (D I : Type) (near : D -> D -> Prop) (places : list I) (sensitivity epsilon : R)
    (exact : D -> I -> Z),
    0 < sensitivity -> 0 < epsilon ->
    (forall S S', near S S' ->
      sum places (fun i => Rabs (IZR (exact S i) - IZR (exact S' i))) <= sensitivity) ->
    let rate := value laplace_rate [("epsilon"%string, epsilon); ("sensitivity"%string, sensitivity)] in
    pure near epsilon (fun S found => with_laplace places rate (exact S) found).

(** Vectors with noise of a density proportional to exp(- |z| / scale). *)
Definition l2_laplace_density : Prop :=
  forall (D I : Type) (near : D -> D -> Prop) (places : list I) (sensitivity epsilon : R)
    (exact : D -> I -> R),
    0 < sensitivity -> 0 < epsilon ->
    (forall S S', near S S' -> norm places (minus (exact S) (exact S')) <= sensitivity) ->
    let scale := value laplace_scale [("epsilon"%string, epsilon); ("sensitivity"%string, sensitivity)] in
    pure near epsilon (fun S found => exp (- (norm places (minus found (exact S)) / scale))).

(** A noisy count decides which of two mechanisms follows. *)
Definition count_before_a_choice : Prop :=
  forall (D O : Type) (near : D -> D -> Prop) (e0 e1 : R) (count : D -> Z) (rare : Z -> bool)
    (one other : Z -> masses D O),
    0 < e0 ->
    (forall S S', near S S' -> Rabs (IZR (count S) - IZR (count S')) <= value one_count []) ->
    (forall k S o, 0 <= one k S o) -> (forall k S o, 0 <= other k S o) ->
    (forall k, pure near e1 (one k)) -> (forall k, pure near e1 (other k)) ->
    pure near (e0 + e1)
      (followed (fun S k => with_laplace [tt] e0 (fun _ => count S) (fun _ => k))
        (fun k => if rare k then one k else other k)).

(** A choice and a noisy cost of the chosen candidate: the noise has the rate up above the cost and
    the rate down below, and the choice has the rate (up - down) / 2. *)
Definition counted_noise (up down : R) (k : Z) : R :=
  (1 - exp (- up)) * (1 - exp (- down)) / (1 - exp (- (up + down)))
  * (if Z.leb 0 k then exp (- (up * IZR k)) else exp (down * IZR k)).

Definition counted_choice : Prop :=
  forall m up down cost cost', 0 < down <= up -> moves_by_one m cost cost' ->
    forall i k, (i < m)%nat ->
      let rate := value counted_choice_rate [("epsilon"%string, up); ("down"%string, down)] in
      chosen m rate cost i * counted_noise up down (k - cost i)
        <= exp up * (chosen m rate cost' i * counted_noise up down (k - cost' i)).

(** A ranking of n records by whole scores has k places at its top. A record above the end of the top
    has a place, one below has none, and those at the end share the places that are left. *)
Definition place_at_top (end_of_top : Z) (part : R) (score : Z) : R :=
  if Z.ltb end_of_top score then 1 else if Z.eqb score end_of_top then part else 0.

Definition is_top (n : nat) (places : R) (score : nat -> Z) (end_of_top : Z) (part : R) : Prop :=
  0 <= part <= 1
  /\ sum (range n) (fun i => place_at_top end_of_top part (score i)) = places.

(** The number of rare records without a place. Replacing a record moves it by one at most, rounded
    down, whatever the ends of the tops are. *)
Definition missed (n : nat) (score : nat -> Z) (is_rare : nat -> bool) (end_of_top : Z) (part : R) : R :=
  sum (range n) (fun i => if is_rare i then 1 - place_at_top end_of_top part (score i) else 0).

Definition missed_moves_by_one : Prop :=
  forall (n : nat) (places : R) (score score' : nat -> Z) (is_rare is_rare' : nat -> bool)
    (e e' : Z) (part part' : R),
    is_top n places score e part -> is_top n places score' e' part' ->
    (exists k, (k < n)%nat
       /\ forall i, (i < n)%nat -> i <> k -> score i = score' i /\ is_rare i = is_rare' i) ->
    Rabs (IZR (Int_part (missed n score is_rare e part))
          - IZR (Int_part (missed n score' is_rare' e' part'))) <= value one_count [].

Definition missed_written_out : Prop :=
  forall (n : nat) (score : nat -> Z) (is_rare : nat -> bool) (e : Z) (left at_end : R),
    at_end <> 0 ->
    let count (counted : nat -> bool) := sum (range n) (fun i => if counted i then 1 else 0) in
    IZR (Int_part (missed n score is_rare e (left / at_end)))
    = value missed_records
        [("below"%string, count (fun i => andb (is_rare i) (negb (Z.ltb e (score i)))));
         ("rare_at_end"%string, count (fun i => andb (is_rare i) (Z.eqb (score i) e)));
         ("left"%string, left); ("at_end"%string, at_end)].

(** ** 5. Rounding

    The standard model of floating-point arithmetic: the result of an operation is the exact one times
    1 + d with |d| <= u. Terms of type T are added in any order. *)

Inductive order (T : Type) := Term (i : T) | Add (l r : order T).
Arguments Term {T}.
Arguments Add {T}.

Fixpoint terms {T : Type} (o : order T) : list T :=
  match o with
  | Term i => [i]
  | Add l r => terms l ++ terms r
  end.

(** The largest number of additions that a term meets. *)
Fixpoint depth {T : Type} (o : order T) : nat :=
  match o with
  | Term _ => 0
  | Add l r => S (Nat.max (depth l) (depth r))
  end.

Inductive summed {T : Type} (u : R) (y : T -> R) : order T -> R -> Prop :=
| summed_term i : summed u y (Term i) (y i)
| summed_add l r a b d :
    summed u y l a -> summed u y r b -> Rabs d <= u ->
    summed u y (Add l r) ((a + b) * (1 + d)).

(** Numbers that are added one after the other; the last one is the head of the list. *)
Inductive added (u : R) : list R -> R -> Prop :=
| added_first x : added u [x] x
| added_next x rest total d :
    added u rest total -> Rabs d <= u -> added u (x :: rest) ((total + x) * (1 + d)).

(** The same by the rule of Kahan, with what is missing of the total. *)
Inductive compensated (u : R) : list R -> R -> R -> Prop :=
| compensated_none : compensated u [] 0 0
| compensated_next x rest total missing d1 d2 d3 d4 :
    compensated u rest total missing ->
    Rabs d1 <= u -> Rabs d2 <= u -> Rabs d3 <= u -> Rabs d4 <= u ->
    let part := (missing + x) * (1 + d1) in
    let larger := (total + part) * (1 + d2) in
    compensated u (x :: rest) larger ((part - (larger - total) * (1 + d3)) * (1 + d4)).

(** So few numbers that second-order terms are negligible: 2^40 in float64. *)
Definition few (u : R) {X : Type} (numbers : list X) : Prop := INR (length numbers) * u <= / 8192.

(** A block has at most b terms, in any order. Up to a number of blocks they are added one after the
    other, more blocks by the rule of Kahan; and so are chunks, if there are several. *)
Definition block_sum {T : Type} (u : R) (y : T -> R) (b : nat) (its : list T) (a : R) : Prop :=
  exists o, terms o = its /\ (depth o < b)%nat /\ summed u y o a.

Inductive sum_of_blocks {T : Type} (u : R) (y : T -> R) (b blocks : nat) : list T -> R -> Prop :=
| plain_sum (parts : list (list T)) values total :
    Forall2 (block_sum u y b) parts values -> (length parts <= blocks)%nat ->
    added u values total -> sum_of_blocks u y b blocks (concat parts) total
| compensated_sum (parts : list (list T)) values total missing :
    Forall2 (block_sum u y b) parts values -> (4 <= blocks)%nat -> few u parts ->
    compensated u values total missing -> sum_of_blocks u y b blocks (concat parts) total.

Inductive sum_as_coded {T : Type} (u : R) (y : T -> R) (b blocks : nat) : list T -> R -> Prop :=
| of_an_array its total : sum_of_blocks u y b blocks its total -> sum_as_coded u y b blocks its total
| of_chunks (chunks : list (list T)) values total missing :
    Forall2 (sum_of_blocks u y b blocks) chunks values -> few u chunks ->
    compensated u values total missing -> sum_as_coded u y b blocks (concat chunks) total.

(** What a sum may be off, relative to the sum of the absolute values of its terms: each term meets
    own + b + blocks + 1 roundings at most, and terms of second order. *)
Definition growth (u : R) (roundings : nat) : R := (1 + u) ^ roundings * (1 + u / 100) - 1.

Definition sums_as_coded : Prop :=
  forall (T : Type) (u : R) (x y : T -> R) (own b blocks : nat) (its : list T) (total : R),
    0 <= u <= / 1000 -> (1 <= b)%nat -> (1 <= blocks)%nat ->
    (forall i, Rabs (y i - x i) <= ((1 + u) ^ own - 1) * Rabs (x i)) ->
    sum_as_coded u y b blocks its total ->
    Rabs (total - sum its x)
      <= growth u (own + b + blocks + 1) * sum its (fun i => Rabs (x i)).

(** The terms of an answer are the rows of all units by their shares. *)
Definition row_places {row : Type} (n : nat) (S : data row) : list (nat * nat) :=
  flat_map (fun i => map (pair i) (range (size (S i)))) (range n).

Definition row_term {row I : Type} (f : question row I) (S : data row) (x : I) (place : nat * nat) : R :=
  share (S (fst place)) (snd place)
  * f (fst place) (snd place) (row_at (S (fst place)) (snd place)) x.

(** An answer whose entries are off by a share of the absolute values of their terms. *)
Definition computed {row I : Type} (relative : R) (n : nat) (f : question row I) (S : data row)
  (answer : I -> R) : Prop :=
  forall x, Rabs (answer x - total n f S x)
    <= relative * sum (row_places n S) (fun place => Rabs (row_term f S x place)).

(** The sums as coded are such answers. *)
Definition answers_as_coded : Prop :=
  forall (row I : Type) (u : R) (own b blocks n : nat) (f : question row I) (S : data row)
    (answer : I -> R),
    0 <= u <= / 1000 -> (1 <= b)%nat -> (1 <= blocks)%nat ->
    (forall x, exists y its,
      Permutation its (row_places n S)
      /\ (forall place, Rabs (y place - row_term f S x place)
           <= ((1 + u) ^ own - 1) * Rabs (row_term f S x place))
      /\ sum_as_coded u y b blocks its (answer x)) ->
    computed (growth u (own + b + blocks + 1)) n f S answer.

(** The second moment as computed in float64; a term meets seven roundings of its own. *)
Definition sizes (n b blocks : nat) : names :=
  [("records"%string, INR n); ("block"%string, INR b); ("blocks"%string, INR blocks)].

Definition replace_one_moment_float64 : Prop :=
  forall (row : Type) (columns : nat) (a : nat -> nat -> row -> nat -> R) (n b blocks : nat),
    (forall i j r, norm (range columns) (a i j r) <= 1) ->
    INR (b + blocks + 8) * value unit_float64 [] <= / 1000 ->
    forall S S' answer answer',
      all_valid n S -> all_valid n S' -> neighbours n S S' ->
      let relative := growth (value unit_float64 []) (7 + b + blocks + 1) in
      computed relative n (square a) S answer -> computed relative n (square a) S' answer' ->
      norm (grid columns columns) (minus answer answer')
        <= value second_moment [] + value moment_rounding (sizes n b blocks).

(** The same where groups of rows are summed in float32 first. The sums of all groups but that of the
    replaced unit have the same bits; that group is off by the roundings of float32 on either data
    set; and the sum of all groups is rounded in float64. Here there are no shares. *)
Definition near_group {I : Type} (places : list I) (group : nat) (exact found : I -> R) : Prop :=
  norm places (minus found exact)
    <= growth (value unit_float32 []) (group + 8) * INR group.

Definition replace_one_moment_float32 : Prop :=
  forall (columns n b blocks group : nat)
    (rest exact exact' found found' answer answer' : nat * nat -> R) (absolute_sum absolute_sum' : nat * nat -> R),
    let places := grid columns columns in
    (1 <= group)%nat ->
    INR (group + 8) * value unit_float32 [] <= / 1000 ->
    INR (b + blocks + 8) * value unit_float64 [] <= / 1000 ->
    norm places (minus exact exact') <= value second_moment [] ->
    near_group places group exact found -> near_group places group exact' found' ->
    let relative := growth (value unit_float64 []) (7 + b + blocks + 1) in
    (forall x, Rabs (answer x - (rest x + found x)) <= relative * absolute_sum x) ->
    (forall x, Rabs (answer' x - (rest x + found' x)) <= relative * absolute_sum' x) ->
    norm places absolute_sum <= INR n * (1 + / 500) ->
    norm places absolute_sum' <= INR n * (1 + / 500) ->
    norm places (minus answer answer')
      <= value second_moment [] + value moment_rounding_float32 [("group"%string, INR group)]
         + value moment_rounding (sizes n b blocks).

(** A group of rows of norm at most one, summed in float32: what was assumed of it. *)
Definition group_of_float32 : Prop :=
  forall (row : Type) (columns group : nat) (a : nat -> nat -> row -> nat -> R) (S : data row)
    (found : nat * nat -> R),
    (forall i j r, norm (range columns) (a i j r) <= 1) ->
    all_valid group S ->
    INR (group + 8) * value unit_float32 [] <= / 1000 ->
    computed (growth (value unit_float32 []) (group + 8)) group (square a) S found ->
    near_group (grid columns columns) group (total group (square a) S) found
    /\ norm (grid columns columns) found <= INR group * (1 + / 500).

(** Slopes times rows, in float64: slopes are computed up to a multiple of the unit, and a term meets
    four roundings of its own. *)
Definition slopes_times_rows {row : Type} (p : nat -> nat -> row -> nat -> R)
  (z : nat -> nat -> row -> nat -> R) : question row (nat * nat) :=
  fun i j r place => z i j r (fst place) * p i j r (snd place).

Definition gradient_float64 : Prop :=
  forall (row : Type) (columns classes n b blocks : nat) (clip evaluation : R)
    (z p computed_p : nat -> nat -> row -> nat -> R) (S : data row) (answer : nat * nat -> R),
    let u := value unit_float64 [] in
    0 <= clip -> 0 <= evaluation ->
    (forall i j r, norm (range columns) (z i j r) <= 1) ->
    (forall i j r, norm (range classes) (p i j r) <= clip) ->
    (forall i j r, norm (range classes) (minus (computed_p i j r) (p i j r)) <= evaluation * u) ->
    INR (b + blocks + 5) * u <= / 1000 ->
    all_valid n S ->
    computed (growth u (4 + b + blocks + 1)) n (slopes_times_rows computed_p z) S answer ->
    norm (grid columns classes) (minus answer (total n (slopes_times_rows p z) S))
      <= value gradient_rounding
           (("clip"%string, clip) :: ("evaluation"%string, evaluation) :: sizes n b blocks).

(** Groups of a gradient in float32. The map L to final rows is linear and has at most the norm
    stretch. A group is so short that its error, after the map, is a small share of the clip. *)
Definition gradient_group_float32 : Prop :=
  forall (row : Type) (columns classes group : nat) (clip stretch : R)
    (z p : nat -> nat -> row -> nat -> R) (S : data row) (found : nat * nat -> R),
    0 <= clip -> 0 <= stretch ->
    (forall i j r, norm (range columns) (z i j r) <= 1) ->
    (forall i j r, norm (range classes) (p i j r) <= clip * (1 + / 5000)) ->
    (1 <= group)%nat -> INR (group + 6) * value unit_float32 [] <= / 1000 ->
    all_valid group S ->
    computed (growth (value unit_float32 []) (group + 6)) group (slopes_times_rows p z) S found ->
    value group_rounding [("group"%string, INR group); ("stretch"%string, stretch)]
      <= value single_share [] ->
    stretch * norm (grid columns classes) (minus found (total group (slopes_times_rows p z) S))
      <= 99 / 100 * (value single_share [] * clip).

(** Under the largest map, raised by a hundredth, groups of one row are short enough. *)
Definition groups_exist : Prop :=
  value group_rounding [("group"%string, 1); ("stretch"%string, 101 / 100 * value largest_stretch [])]
    <= value single_share [].

(** A product of computed sums with a map of at most the norm stretch in float64: its Frobenius norm
    is at most the root of the number of its columns times that. *)
Definition product_with_map : Prop :=
  forall (outputs columns classes : nat) (stretch : R) (map : nat * nat -> R)
    (sums answer : nat * nat -> R),
    let u := value unit_float64 [] in
    0 <= stretch -> INR (columns + 4) * u <= / 1000 ->
    norm (grid outputs columns) map <= stretch * sqrt (INR columns + 2) ->
    (forall i k, Rabs (answer (i, k) - sum (range columns) (fun j => map (i, j) * sums (j, k)))
       <= growth u (columns + 4) * sum (range columns) (fun j => Rabs (map (i, j) * sums (j, k)))) ->
    norm (grid outputs classes)
      (minus answer (fun x => sum (range columns) (fun j => map (fst x, j) * sums (j, snd x))))
      <= stretch * value product_rounding [("columns"%string, INR columns)]
         * norm (grid columns classes) sums.

(** A step as computed in float64. First rows z are mapped by a released map of at most the norm
    stretch, and a constant is appended: final rows. Slopes are computed up to errors of rounded
    margins and of their evaluation. The sums over first rows are multiplied by the map. *)
Definition mapped_row (columns : nat) (map : nat * nat -> R) (z : nat -> R) : nat -> R :=
  fun x => sum (range columns) (fun j => map (x, j) * z j).

Definition final_of (outputs columns : nat) (map : nat * nat -> R) (constant : R) (z : nat -> R) :
  nat -> R :=
  with_constant outputs (mapped_row columns map z) constant.

(** What is computed of one data set. *)
Definition step_of {row : Type} (outputs columns classes n b blocks : nat) (map : nat * nat -> R)
  (constant : R) (z computed_p : nat -> nat -> row -> nat -> R) (S : data row)
  (answer : nat * nat -> R) : Prop :=
  let u := value unit_float64 [] in
  exists (sums : nat * nat -> R) (last : nat -> R),
    computed (growth u (4 + b + blocks + 1)) n (slopes_times_rows computed_p z) S sums
    /\ computed (growth u (4 + b + blocks + 1)) n (fun i j r k => constant * computed_p i j r k) S last
    /\ (forall x k, (x < outputs)%nat ->
         Rabs (answer (x, k) - sum (range columns) (fun j => map (x, j) * sums (j, k)))
         <= growth u (columns + 4) * sum (range columns) (fun j => Rabs (map (x, j) * sums (j, k))))
    /\ (forall k, answer (outputs, k) = last k).

Definition replace_one_step_float64 : Prop :=
  forall (row : Type) (outputs columns classes n b blocks : nat)
    (clip evaluation mapped stretch constant : R) (map : nat * nat -> R)
    (z p computed_p : nat -> nat -> row -> nat -> R),
    let u := value unit_float64 [] in
    let slope_error := (1 / 2 * (INR columns + 5) * mapped + evaluation) * u in
    0 <= clip -> 0 <= evaluation -> 0 <= mapped -> 256 <= stretch -> Rabs constant <= 1 ->
    INR (b + blocks + 5) * u <= / 1000 -> INR (columns + 4) * u <= / 1000 ->
    slope_error <= clip / 1000 ->
    (forall v, norm (range outputs) (mapped_row columns map v) <= stretch * norm (range columns) v) ->
    norm (grid outputs columns) map <= stretch * sqrt (INR columns + 2) ->
    (forall i j r, norm (range columns) (z i j r) <= 1) ->
    (forall i j r,
      norm (range (1 + outputs)) (final_of outputs columns map constant (z i j r)) <= 1 + / 2 ^ 40) ->
    (forall i j r, norm (range classes) (p i j r) <= clip) ->
    (forall i j r, norm (range classes) (minus (computed_p i j r) (p i j r)) <= slope_error) ->
    forall S S' answer answer',
      all_valid n S -> all_valid n S' -> neighbours n S S' ->
      step_of outputs columns classes n b blocks map constant z computed_p S answer ->
      step_of outputs columns classes n b blocks map constant z computed_p S' answer' ->
      norm (grid (1 + outputs) classes) (minus answer answer')
        <= value step_float64
             (("clip"%string, clip) :: ("evaluation"%string, evaluation) :: ("mapped"%string, mapped)
              :: ("stretch"%string, stretch) :: ("columns"%string, INR columns) :: sizes n b blocks).

(** A step as computed where rows and slopes are in float32. The sums of all groups but that of the
    replaced unit have the same bits, so they are a vector of their own, [rest]; G is the group of that
    unit. The sum of all groups, the constant column and the product with the map are in float64.
    Coefficients have a column for each class, or one for two labels. *)
Definition step_of_float32 {row : Type} (outputs columns classes n b blocks group : nat) (longest : R)
  (map : nat * nat -> R) (constant : R) (z computed_p : nat -> nat -> row -> nat -> R)
  (rest : nat * nat -> R) (rest_last : nat -> R) (G : data row) (answer : nat * nat -> R) : Prop :=
  let relative := growth (value unit_float64 []) (4 + b + blocks + 1) in
  exists (found sums absolute_sums : nat * nat -> R) (last absolute_last : nat -> R),
    computed (growth (value unit_float32 []) (group + 6)) group (slopes_times_rows computed_p z) G found
    /\ (forall x, Rabs (rest x + found x) <= absolute_sums x)
    /\ (forall x, Rabs (sums x - (rest x + found x)) <= relative * absolute_sums x)
    /\ norm (grid columns classes) absolute_sums <= INR n * longest * (1 + / 500)
    /\ (forall k, Rabs (last k - (rest_last k + total group (fun i j r k => constant * computed_p i j r k) G k))
         <= relative * absolute_last k)
    /\ norm (range classes) absolute_last <= INR n * longest
    /\ (forall x k, (x < outputs)%nat ->
         Rabs (answer (x, k) - sum (range columns) (fun j => map (x, j) * sums (j, k)))
         <= growth (value unit_float64 []) (columns + 4)
            * sum (range columns) (fun j => Rabs (map (x, j) * sums (j, k))))
    /\ (forall k, answer (outputs, k) = last k).

Definition replace_one_step_float32 : Prop :=
  forall (row : Type) (outputs columns classes labels n b blocks group : nat)
    (clip evaluation mapped stretch constant : R) (map : nat * nat -> R)
    (z computed_p : nat -> nat -> row -> nat -> R) (rest : nat * nat -> R) (rest_last : nat -> R),
    let u := value unit_float64 [] in
    let longer := / 2 ^ 23 * (INR labels + 16) in
    let longest := clip * (1 + longer) in
    0 <= clip -> 0 <= evaluation -> 0 <= mapped -> 256 <= stretch -> Rabs constant <= 1 ->
    longer <= / 5000 ->
    INR (b + blocks + 5) * u <= / 1000 -> INR (columns + 4) * u <= / 1000 ->
    (1 <= group)%nat -> INR (group + 6) * value unit_float32 [] <= / 1000 ->
    value group_rounding [("group"%string, INR group); ("stretch"%string, stretch)]
      <= value single_share [] ->
    (forall v, norm (range outputs) (mapped_row columns map v) <= stretch * norm (range columns) v) ->
    norm (grid outputs columns) map <= stretch * sqrt (INR columns + 2) ->
    (forall i j r, norm (range columns) (z i j r) <= 1) ->
    (forall i j r,
      norm (range (1 + outputs)) (final_of outputs columns map constant (z i j r)) <= 1 + / 2 ^ 40) ->
    (forall i j r, norm (range classes) (computed_p i j r) <= longest) ->
    forall G G' answer answer',
      all_valid group G -> all_valid group G' -> neighbours group G G' ->
      step_of_float32 outputs columns classes n b blocks group longest map constant z computed_p
        rest rest_last G answer ->
      step_of_float32 outputs columns classes n b blocks group longest map constant z computed_p
        rest rest_last G' answer' ->
      norm (grid (1 + outputs) classes) (minus answer answer')
        <= value step_float32
             (("clip"%string, clip) :: ("evaluation"%string, evaluation) :: ("mapped"%string, mapped)
              :: ("stretch"%string, stretch) :: ("columns"%string, INR columns)
              :: ("classes"%string, INR labels) :: sizes n b blocks).

(** IEEE 754 arithmetic, rounded to nearest, even, with gradual underflow and without overflow: sums
    of floats follow the model; so do products that do not underflow. *)
Definition float64 (x : R) : Prop := generic_format radix2 (FLT_exp (-1074) 53) x.
Definition round64 (x : R) : R := round radix2 (FLT_exp (-1074) 53) ZnearestE x.
Definition float32 (x : R) : Prop := generic_format radix2 (FLT_exp (-149) 24) x.
Definition round32 (x : R) : R := round radix2 (FLT_exp (-149) 24) ZnearestE x.

Definition float64_follows_the_model : Prop :=
  (forall x y, float64 x -> float64 y ->
     exists d, Rabs d <= value unit_float64 [] /\ round64 (x + y) = (x + y) * (1 + d))
  /\ (forall x, bpow radix2 (-1022) <= Rabs x ->
       exists d, Rabs d <= value unit_float64 [] /\ round64 x = x * (1 + d)).

Definition float32_follows_the_model : Prop :=
  (forall x y, float32 x -> float32 y ->
     exists d, Rabs d <= value unit_float32 [] /\ round32 (x + y) = (x + y) * (1 + d))
  /\ (forall x, bpow radix2 (-126) <= Rabs x ->
       exists d, Rabs d <= value unit_float32 [] /\ round32 x = x * (1 + d)).

(** Whole multiples of a power of two, fewer than 2^53 of them, are added exactly: counts, lengths and
    moments of columns are such numbers, in any order. *)
Definition whole_sums_are_exact : Prop :=
  forall (e m k : Z), (-1074 <= e)%Z -> (Z.abs (m + k) < 2 ^ 53)%Z ->
    round64 (IZR m * bpow radix2 e + IZR k * bpow radix2 e) = IZR (m + k) * bpow radix2 e.

(** ** 6. Exact noise on a public grid

    A mechanism gives a probability to each event. Any relation between the probabilities of an event
    on neighbouring data sets, a trade-off of Gaussian differential privacy among them, holds for
    what is computed from the outcome, as it holds for all events. *)
Definition mechanism (D O : Type) : Type := D -> (O -> Prop) -> R.

Definition related {D O : Type} (near : D -> D -> Prop) (relation : R -> R -> Prop)
  (M : mechanism D O) : Prop :=
  forall S S', near S S' -> forall event, relation (M S event) (M S' event).

Definition post_processed {D O P : Type} (g : O -> P) (M : mechanism D O) : mechanism D P :=
  fun S event => M S (fun o => event (g o)).

Definition post_processing : Prop :=
  forall (D O P : Type) (near : D -> D -> Prop) (relation : R -> R -> Prop) (g : O -> P)
    (M : mechanism D O),
    related near relation M -> related near relation (post_processed g M).

(** What is released of a noisy vector: the nearest multiples of the grid, clipped. *)
Definition clip_to (limit x : R) : R := Rmax (- limit) (Rmin x limit).

Definition on_grid {I : Type} (step limit : R) (x : I -> R) : I -> R :=
  fun i => clip_to limit (step * IZR (ZnearestE (x i / step))).

Definition noise_on_the_grid : Prop :=
  forall (D I : Type) (near : D -> D -> Prop) (relation : R -> R -> Prop) (step limit : R)
    (M : mechanism D (I -> R)),
    related near relation M -> related near relation (post_processed (on_grid step limit) M).

(** The exact value is clipped before the noise, which moves neighbours no further apart. Nothing
    else is done to it, so the grid shifts nothing that would have to be charged. *)
Definition clipping_shrinks : Prop :=
  forall (I : Type) (places : list I) (limit : R) (u v : I -> R),
    norm places (minus (fun i => clip_to limit (u i)) (fun i => clip_to limit (v i)))
      <= norm places (minus u v).

(** ** The formulas are those of the definitions above *)

Definition sums_written_out : Prop :=
  (forall x, length_steps x = value length_step [("square"%string, x)])
  /\ (forall q k, (0 < k)%nat ->
       person_share q k = value share_of_rows [("grid"%string, 2 ^ q); ("rows"%string, INR k)])
  /\ (forall M i j, i <> j -> packed M (i, j) = M (i, j) * value off_diagonal []).

Definition rows_written_out : Prop :=
  (forall (I : Type) (places : list I) longest u, clipped places longest u
     = scaled (value row_factor [("longest"%string, longest); ("norm"%string, norm places u)]) u)
  /\ (forall columns c x, first_row columns c x
       = scaled (/ value first_length [("constant"%string, c)])
           (with_constant columns (clipped (range columns) 1 x) c))
  /\ (forall columns radius c image, final_row columns radius c image
       = scaled (/ value final_length [("radius"%string, radius); ("constant"%string, c)])
           (with_constant columns (clipped (range columns) radius image) c)).

Definition slopes_written_out : Prop :=
  (forall y s, slope_of_two y s = value clipped_slope [("sign"%string, y); ("score"%string, s)])
  /\ (forall classes y s, let found := minus (indicator y) (softmax classes s) in
       slopes_of_many classes y s
       = scaled (value slopes_factor [("norm"%string, norm (range classes) found)]) found).

Definition moments_written_out : Prop :=
  forall s : Z,
    mean_of 1 (fun _ => s) = value column_mean [("whole"%string, IZR s)]
    /\ 3 / 2 * mean_square_of 1 (fun _ => s) = value column_square [("whole"%string, IZR s)].

Definition moments_of_people_written_out : Prop :=
  forall (k : nat) (s : nat -> Z), (0 < k)%nat -> (0 <= whole_sum k s)%Z ->
    let rows := ("rows"%string, INR k) in
    mean_of k s = value person_mean [("total"%string, IZR (whole_sum k s)); rows]
    /\ mean_square_of k s
      = value person_square [("squares"%string, IZR (whole_sum k (fun j => s j * s j)%Z)); rows].
