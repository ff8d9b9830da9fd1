(** What is proved: definitions and statements alone. The proofs are in the other files.

    Every definition here is frozen by a digest of its text. *)
From Coq Require Import Reals String List ZArith.
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
