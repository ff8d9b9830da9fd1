(** The formulas of the statements, as expressions that can be written out.

    [value] is what a formula means in a statement. [shown] writes it out: [.ci/proofs] compares that
    with [formulas.json], from which the tests evaluate the same formula. *)
From Coq Require Import Reals String List ZArith.
Import ListNotations.
Open Scope R_scope.
Open Scope string_scope.

(** Whole numbers, numbers by name, and operations. [Two n] is 2 to the power -n. *)
Inductive formula : Set :=
| Whole (n : Z)
| Two (n : nat)
| Named (name : string)
| Plus (a b : formula)
| Minus (a b : formula)
| Times (a b : formula)
| Over (a b : formula)
| Least (a b : formula)
| Greatest (a b : formula)
| Root (a : formula)
| Exponential (a : formula)
| Floor (a : formula).

Definition names := list (string * R).

Fixpoint look_up (name : string) (known : names) : R :=
  match known with
  | [] => 0
  | (key, number) :: rest => if String.eqb name key then number else look_up name rest
  end.

Fixpoint value (f : formula) (known : names) : R :=
  match f with
  | Whole n => IZR n
  | Two n => / 2 ^ n
  | Named name => look_up name known
  | Plus a b => value a known + value b known
  | Minus a b => value a known - value b known
  | Times a b => value a known * value b known
  | Over a b => value a known / value b known
  | Least a b => Rmin (value a known) (value b known)
  | Greatest a b => Rmax (value a known) (value b known)
  | Root a => sqrt (value a known)
  | Exponential a => exp (value a known)
  | Floor a => IZR (Int_part (value a known))
  end.

(** Decimal digits of a number of at least 0. *)
Fixpoint digits (fuel : nat) (n : Z) : string :=
  let last := String (Ascii.ascii_of_N (Z.to_N (48 + n mod 10))) EmptyString in
  match fuel with
  | O => ""
  | S more => if Z.ltb n 10 then last else digits more (n / 10) ++ last
  end.

Definition operation (name : string) (parts : list string) : string :=
  "(" ++ name ++ fold_right (fun part rest => " " ++ part ++ rest) ")" parts.

Fixpoint shown (f : formula) : string :=
  match f with
  | Whole n => digits 20 n
  | Two n => operation "two" [digits 20 (Z.of_nat n)]
  | Named name => name
  | Plus a b => operation "plus" [shown a; shown b]
  | Minus a b => operation "minus" [shown a; shown b]
  | Times a b => operation "times" [shown a; shown b]
  | Over a b => operation "over" [shown a; shown b]
  | Least a b => operation "least" [shown a; shown b]
  | Greatest a b => operation "greatest" [shown a; shown b]
  | Root a => operation "root" [shown a]
  | Exponential a => operation "exponential" [shown a]
  | Floor a => operation "floor" [shown a]
  end.

(** ** 1. Sums *)

(** One count, and the sum of squared lengths. *)
Definition one_count : formula := Whole 1.
Definition squared_lengths : formula := Whole 1.

(** The squared length of a row as it is counted; the share of the rows of a person. *)
Definition length_step : formula :=
  Over (Floor (Times (Least (Named "square") (Whole 1)) (Whole 65536))) (Whole 65536).
Definition share_of_rows : formula := Over (Floor (Over (Named "grid") (Named "rows"))) (Named "grid").

(** Counts in cells of columns: Euclidean, and sum of absolute values. *)
Definition counts : formula := Root (Times (Whole 2) (Named "columns")).
Definition counts_absolute : formula := Times (Whole 2) (Named "columns").

Definition second_moment : formula := Root (Whole 2).

(** The factor of an entry of a packed matrix off the diagonal. *)
Definition off_diagonal : formula := Root (Whole 2).

(** ** 2. Rows and slopes *)

(** The factor that clips a row, and the numbers by which rows with a constant are divided. *)
Definition row_factor : formula := Least (Whole 1) (Over (Named "longest") (Named "norm")).
Definition first_length : formula :=
  Root (Plus (Whole 1) (Times (Named "constant") (Named "constant"))).
Definition final_length : formula :=
  Greatest (Root (Plus (Times (Named "radius") (Named "radius"))
                       (Times (Named "constant") (Named "constant")))) (Whole 1).

(** Largest norm of the slopes of a record: of two classes, and of more. *)
Definition clip_of_two : formula := Over (Whole 1) (Whole 2).
Definition clip_of_many : formula := Root (Over (Whole 1) (Whole 2)).

(** The slope of a record of two classes, and the factor of the slopes of more. *)
Definition clipped_slope : formula :=
  Over (Named "sign")
    (Greatest (Plus (Whole 1) (Exponential (Least (Times (Named "sign") (Named "score")) (Whole 40))))
       (Whole 2)).
Definition slopes_factor : formula := Over clip_of_many (Greatest (Named "norm") clip_of_many).

Definition step (clip : formula) : formula := Times (Whole 2) clip.
Definition step_of_two : formula := step clip_of_two.
Definition step_of_many : formula := step clip_of_many.

(** ** 3. Moments of columns *)

Definition column_moments : formula := Times (Whole 2) (Root (Named "columns")).

(** What a row contributes, by the whole number of its column. *)
Definition column_mean : formula := Over (Named "whole") (Whole 1024).
Definition column_square : formula :=
  Times (Over (Whole 3) (Whole 2)) (Times column_mean column_mean).

(** What a person contributes, by the sums over its rows of the whole numbers, here of a sum of at
    least 0, and of their squares. *)
Definition person_mean : formula := Over (Floor (Over (Named "total") (Named "rows"))) (Whole 1024).
Definition person_square : formula :=
  Over (Minus (Whole 0) (Floor (Over (Minus (Whole 0) (Named "squares")) (Named "rows"))))
       (Whole 1048576).

(** ** 4. Choices *)

(** The factor of a cost in the exponent, and that of a choice whose cost is then counted. *)
Definition choice_rate : formula := Over (Named "epsilon") (Whole 2).
Definition counted_choice_rate : formula := Over (Minus (Named "epsilon") (Named "down")) (Whole 2).

(** The rate of Laplace noise on whole numbers, and the scale of that on vectors. *)
Definition laplace_rate : formula := Over (Named "epsilon") (Named "sensitivity").
Definition laplace_scale : formula := Over (Named "sensitivity") (Named "epsilon").

(** ** 5. Rounding *)

Definition unit_float64 : formula := Two 53.
Definition unit_float32 : formula := Two 24.

(** What is added to the sensitivity of the second moment: for sums in float64, and for groups of rows
    that are summed in float32 first. *)
Definition moment_rounding : formula :=
  Times (Over (Whole 101) (Whole 100))
    (Times (Named "records")
      (Times (Whole 2)
        (Times (Plus (Plus (Named "block") (Named "blocks")) (Whole 8)) unit_float64))).
Definition moment_rounding_float32 : formula :=
  Times (Times (Over (Whole 204) (Whole 100)) unit_float32)
    (Times (Plus (Named "group") (Whole 8)) (Named "group")).

(** How far the sum of computed slopes times rows is from the exact one. *)
Definition gradient_rounding : formula :=
  Times (Over (Whole 101) (Whole 100))
    (Times unit_float64
      (Plus (Plus (Times (Plus (Plus (Named "block") (Named "blocks")) (Whole 5))
                         (Times (Named "records") (Named "clip")))
                  (Times (Named "evaluation") (Named "records")))
            (Times (Whole 3) (Times (Named "records") (Named "clip"))))).

(** What a group of a gradient in float32 may be off, times the norm of the map, and what it may be at
    most: shares of the influence of a record. *)
Definition group_rounding : formula :=
  Times (Times (Times (Times (Over (Whole 102) (Whole 100)) unit_float32) (Named "group"))
               (Plus (Named "group") (Whole 6))) (Named "stretch").
Definition single_share : formula := Two 9.

(** The largest norm of a released map: 1024 times the length of a row with the constant 1/2, and of
    what its centring adds. *)
Definition largest_stretch : formula :=
  Times (Times (Whole 1024) (Root (Plus (Whole 1) (Over (Whole 1) (Whole 4)))))
        (Root (Plus (Whole 1) (Whole 4))).

(** What a product with a map is off, relative to the norms of the map and of the sums. *)
Definition product_rounding : formula :=
  Times (Times (Times (Over (Whole 101) (Whole 100)) unit_float64) (Plus (Named "columns") (Whole 4)))
        (Root (Plus (Named "columns") (Whole 2))).

(** The sensitivity of a step in float64: twice the clip times the largest norm of a final row, and
    the errors of sums, of their product with the map, and of margins. *)
Definition margins_rounding : formula :=
  Times (Times (Times (Times (Over (Whole 101) (Whole 100)) unit_float64) (Over (Whole 1) (Whole 2)))
               (Plus (Named "columns") (Whole 5))) (Named "mapped").
Definition step_float64 : formula :=
  Times (Whole 2)
    (Plus (Times (Named "clip") (Plus (Whole 1) (Two 40)))
       (Plus (Times (Named "stretch")
                (Plus gradient_rounding
                   (Times product_rounding (Times (Named "records") (Named "clip")))))
             (Times (Named "records") margins_rounding))).
