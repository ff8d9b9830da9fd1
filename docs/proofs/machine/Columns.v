(** Proofs of section 3: moments of columns. *)
From Coq Require Import Reals String List Psatz ZArith Lia.
From Machine Require Import Formulas Statements Vectors.
Import ListNotations.
Open Scope R_scope.

Lemma whole_sum_S k s : whole_sum (S k) s = (whole_sum k s + s k)%Z.
Proof.
  assert (H : forall l z, fold_right Z.add z l = (fold_right Z.add 0 l + z)%Z).
  { induction l as [|x l IH]; intros z; cbn; [lia|rewrite IH; lia]. }
  unfold whole_sum, range. rewrite seq_S, map_app, fold_right_app. cbn. rewrite H. lia.
Qed.

Lemma whole_sum_bound k s m :
  (forall j, (0 <= s j <= m)%Z) -> (0 <= whole_sum k s <= Z.of_nat k * m)%Z.
Proof.
  intros H. induction k as [|k IH]; [cbn; lia|]. rewrite whole_sum_S. specialize (H k). lia.
Qed.

(** The square of a sum is at most the number of terms times the sum of squares. *)
Lemma whole_cauchy k s :
  (whole_sum k s * whole_sum k s <= Z.of_nat k * whole_sum k (fun j => s j * s j))%Z.
Proof.
  induction k as [|k IH]; [cbn; lia|]. rewrite !whole_sum_S.
  set (a := whole_sum k s) in *. set (q := whole_sum k (fun j => (s j * s j)%Z)) in *.
  replace (Z.of_nat (S k)) with (Z.of_nat k + 1)%Z by lia.
  assert (0 <= Z.of_nat k)%Z by lia. set (n := Z.of_nat k) in *.
  assert (Q : (0 <= q)%Z).
  { assert (forall j, (0 <= s j * s j)%Z) by (intros; apply Z.square_nonneg).
    unfold q. clear - H0. induction k as [|k IH]; [cbn; lia|]. rewrite whole_sum_S. specialize (H0 k). lia. }
  assert (2 * a * s k <= q + n * (s k * s k))%Z.
  { destruct (Z.eq_dec n 0) as [E|E].
    - rewrite E in *. assert (a = 0)%Z by nia. nia.
    - assert (n * (2 * a * s k) <= n * (q + n * (s k * s k)))%Z.
      { pose proof (Z.square_nonneg (a - n * s k)). nia. }
      nia. }
  nia.
Qed.

(** What a unit contributes to a column: a of square at most b, which is at most one. *)
Lemma unit_moments k s :
  (0 < k)%nat -> (forall j, (-1024 <= s j <= 1024)%Z) ->
  mean_of k s * mean_of k s <= mean_square_of k s /\ mean_square_of k s <= 1.
Proof.
  intros Hk Hs. unfold mean_of, mean_square_of.
  set (t := whole_sum k s). set (q := whole_sum k (fun j => (s j * s j)%Z)).
  set (n := Z.of_nat k). assert (N : (0 < n)%Z) by (unfold n; lia).
  set (m := Z.quot t n). set (b := (- (- q / n))%Z).
  assert (C : (t * t <= n * q)%Z) by apply whole_cauchy.
  assert (Q : (0 <= q <= n * (1024 * 1024))%Z).
  { apply whole_sum_bound. intros j. specialize (Hs j). nia. }
  assert (B1 : (q <= n * b)%Z).
  { unfold b. pose proof (Z.mul_div_le (- q) n N). nia. }
  assert (B2 : (b <= 1024 * 1024)%Z).
  { unfold b. assert (- (1024 * 1024) <= - q / n)%Z by (apply Z.div_le_lower_bound; lia). lia. }
  assert (M : (Z.abs m * n <= Z.abs t)%Z).
  { unfold m. destruct (Z.le_gt_cases 0 t) as [T|T].
    - pose proof (Z.quot_pos t n T N). pose proof (Z.mul_quot_le t n T). lia.
    - pose proof (Z.quot_pos (- t) n). pose proof (Z.mul_quot_le (- t) n).
      replace (Z.quot t n) with (- Z.quot (- t) n)%Z by (rewrite Z.quot_opp_l; lia). lia. }
  assert (A : (m * m <= b)%Z).
  { assert ((Z.abs m * n) * (Z.abs m * n) <= n * (n * b))%Z.
    { transitivity (Z.abs t * Z.abs t)%Z.
      - apply Z.mul_le_mono_nonneg; lia.
      - assert (Z.abs t * Z.abs t = t * t)%Z by (destruct (Z.abs_spec t) as [[_ ->]|[_ ->]]; ring). nia. }
    assert (Z.abs m * Z.abs m = m * m)%Z by (destruct (Z.abs_spec m) as [[_ ->]|[_ ->]]; ring).
    nia. }
  apply IZR_le in A. apply IZR_le in B2. rewrite mult_IZR in A. rewrite mult_IZR in B2.
  split; lra.
Qed.

(** One column: (a - a')^2 + (3/2)^2 (b - b')^2 is at most 4. *)
Lemma column_distance_ordered a b a' b' :
  a * a <= b -> b <= 1 -> a' * a' <= b' -> b' <= b ->
  (a - a') * (a - a') + 9 / 4 * ((b - b') * (b - b')) <= 4.
Proof.
  intros Hb H1 Hb' H2.
  assert (0 <= b) by nra. assert (0 <= b') by nra.
  set (u := sqrt b). set (v := sqrt b').
  assert (U : u * u = b) by (apply sqrt_sqrt; assumption).
  assert (V : v * v = b') by (apply sqrt_sqrt; assumption).
  assert (U0 : 0 <= u) by apply sqrt_pos. assert (V0 : 0 <= v) by apply sqrt_pos.
  assert (U1 : u <= 1) by nra. assert (V1 : v <= u) by nra.
  assert (A : - u <= a <= u) by nra. assert (A' : - v <= a' <= v) by nra.
  assert (D : (a - a') * (a - a') <= (u + v) * (u + v)) by nra.
  rewrite <- U, <- V.
  (* The bound increases in u, up to u = 1. *)
  assert (E : (u + v) * (u + v) * (1 + 9 / 4 * ((u - v) * (u - v)))
              <= (1 + v) * (1 + v) * (1 + 9 / 4 * ((1 - v) * (1 - v)))).
  { apply Rmult_le_compat; nra. }
  (* One variable is left: x = 1 + v between 1 and 2. *)
  assert (F : (1 + v) * (1 + v) * (1 + 9 / 4 * ((1 - v) * (1 - v))) <= 4).
  { set (x := 1 + v). replace (1 - v) with (2 - x) by (unfold x; ring).
    assert (0 <= x <= 2) by (unfold x; lra).
    assert (P : 0 <= 2 + x - 9 / 4 * (x * x * (2 - x))).
    { assert (0 <= x * ((x - 6 / 5) * (x - 6 / 5))) by (apply Rmult_le_pos; [lra|apply Rle_0_sqr]).
      assert (0 <= (x - 56 / 45) * (x - 56 / 45)) by apply Rle_0_sqr. nra. }
    nra. }
  nra.
Qed.

Lemma column_distance a b a' b' :
  a * a <= b -> b <= 1 -> a' * a' <= b' -> b' <= 1 ->
  (a - a') * (a - a') + 9 / 4 * ((b - b') * (b - b')) <= 4.
Proof.
  intros H1 H2 H3 H4. destruct (Rle_dec b' b) as [L|L].
  - now apply column_distance_ordered.
  - pose proof (column_distance_ordered a' b' a b). nra.
Qed.

Theorem replace_one_column_moments_proof : replace_one_column_moments.
Proof.
  intros row d s Hs n S S' Size [k [Hk Same]]. cbn.
  set (entry := fun (T : nat -> rows_of row) (x : nat) (i : nat) (j : nat) =>
    s i j (each_row (T i) j) x).
  assert (D : forall x (b : bool),
    minus (column_statistics n s S) (column_statistics n s S') (x, b)
    = if b then mean_of (n_rows (S k)) (entry S x k) - mean_of (n_rows (S' k)) (entry S' x k)
      else 3 / 2 * (mean_square_of (n_rows (S k)) (entry S x k)
                    - mean_square_of (n_rows (S' k)) (entry S' x k))).
  { intros x b. unfold minus, column_statistics. cbn [fst snd].
    rewrite (sum_single n k) by (assumption || (intros i Hi Hik; now rewrite (Same i Hi Hik))).
    unfold entry. destruct b; ring. }
  pose proof (pos_INR d) as P. pose proof (sqrt_pos (INR d)) as Q.
  apply norm_le; [lra|].
  replace (2 * sqrt (INR d) * (2 * sqrt (INR d))) with (INR d * 4)
    by (pose proof (sqrt_sqrt (INR d) P); nra).
  rewrite <- (length_range d) at 2. rewrite <- sum_const.
  unfold dot. rewrite sum_prod. apply sum_le. intros x _. cbn [sum]. rewrite !D.
  destruct (Size k) as [A B].
  destruct (unit_moments (n_rows (S k)) (entry S x k) A) as [M1 M2]; [intros; apply Hs|].
  destruct (unit_moments (n_rows (S' k)) (entry S' x k) B) as [N1 N2]; [intros; apply Hs|].
  pose proof (column_distance _ _ _ _ M1 M2 N1 N2). nra.
Qed.

Theorem moments_written_out_proof : moments_written_out.
Proof.
  intros s. unfold mean_of, mean_square_of, whole_sum, range. cbn.
  rewrite !Z.add_0_r, Z.quot_1_r, Z.div_1_r, Z.opp_involutive, mult_IZR. split; [reflexivity|field].
Qed.

Theorem moments_of_people_written_out_proof : moments_of_people_written_out.
Proof.
  intros k s Hk Hs. cbn. unfold mean_of, mean_square_of. rewrite !INR_IZR_INZ.
  split; [rewrite int_part_quotient by lia; now rewrite Z.quot_div_nonneg by lia|].
  set (q := whole_sum k (fun j => (s j * s j)%Z)).
  replace (0 - IZR q) with (IZR (- q)) by (rewrite opp_IZR; ring).
  rewrite int_part_quotient by lia. rewrite opp_IZR. field.
Qed.

Theorem nearest_of_clipped_proof : nearest_of_clipped.
Proof.
  intros v s H. apply abs_between in H.
  assert (-1024 <= Rmax (-1024) (Rmin v 1024) <= 1024).
  { split; [apply Rmax_l|]. apply Rmax_lub; [lra|apply Rmin_r]. }
  assert (A : IZR (-1025) < IZR s) by lra. assert (B : IZR s < IZR 1025) by lra.
  apply lt_IZR in A. apply lt_IZR in B. lia.
Qed.
