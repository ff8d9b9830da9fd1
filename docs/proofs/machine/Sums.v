(** Proofs of section 1: sums over records and people. *)
From Coq Require Import Reals String List Psatz ZArith Lia.
From Machine Require Import Formulas Statements Vectors.
Import ListNotations.
Open Scope R_scope.

(** Two data sets that are neighbours differ by the contributions of one place. *)
Lemma change_is_one {row I} n (f : question row I) S S' :
  neighbours n S S' ->
  exists k, (k < n)%nat
    /\ forall x, change n f S S' x = contribution f k (S k) x - contribution f k (S' k) x.
Proof.
  intros [k [Hk H]]. exists k. split; [assumption|]. intros x.
  apply (sum_single n k); [assumption|]. intros i Hi Hik. now rewrite (H i Hi Hik).
Qed.

Lemma contribution_norm {row I} (places : list I) (f : question row I) c i u :
  valid u -> 0 <= c ->
  (forall j, (j < size u)%nat -> norm places (f i j (row_at u j)) <= c) ->
  norm places (contribution f i u) <= c.
Proof.
  intros [Hs Ht] Hc H. unfold contribution.
  eapply Rle_trans; [apply norm_sum|].
  apply Rle_trans with (sum (range (size u)) (fun j => c * share u j)).
  - apply sum_le. intros j Hj. apply in_range in Hj.
    rewrite Rabs_pos_eq by auto. rewrite Rmult_comm. apply Rmult_le_compat_r; auto.
  - rewrite sum_scale. nra.
Qed.

Lemma contribution_between {row I} (f : question row I) i u x :
  valid u -> (forall j, (j < size u)%nat -> 0 <= f i j (row_at u j) x <= 1) ->
  0 <= contribution f i u x <= 1.
Proof.
  intros [Hs Ht] H. unfold contribution. split.
  - apply sum_nonneg. intros j Hj. apply in_range in Hj.
    apply Rmult_le_pos; [auto|apply H; assumption].
  - apply Rle_trans with (sum (range (size u)) (share u)); [|assumption].
    apply sum_le. intros j Hj. apply in_range in Hj.
    specialize (H j Hj). specialize (Hs j Hj). nra.
Qed.

(** The general form: the contributions of the units at hand have norm at most c. *)
Lemma replace_one_sum_of {row I} (places : list I) (f : question row I) c n S S' :
  0 <= c ->
  (forall i j, (i < n)%nat -> (j < size (S i))%nat -> norm places (f i j (row_at (S i) j)) <= c) ->
  (forall i j, (i < n)%nat -> (j < size (S' i))%nat -> norm places (f i j (row_at (S' i) j)) <= c) ->
  all_valid n S -> all_valid n S' -> neighbours n S S' ->
  norm places (change n f S S') <= 2 * c.
Proof.
  intros Hc H H' V V' N. destruct (change_is_one n f S S' N) as [k [Hk E]].
  rewrite (norm_ext places _ (minus (contribution f k (S k)) (contribution f k (S' k))))
    by (intros; apply E).
  eapply Rle_trans; [apply norm_minus|].
  assert (norm places (contribution f k (S k)) <= c) by (apply contribution_norm; auto).
  assert (norm places (contribution f k (S' k)) <= c) by (apply contribution_norm; auto).
  lra.
Qed.

Theorem replace_one_sum_proof : replace_one_sum.
Proof. intros row I places f c Hc H n S S' V V' N. apply replace_one_sum_of; auto. Qed.

Theorem replace_one_count_proof : replace_one_count.
Proof.
  intros row f H n S S' V V' N. cbn.
  destruct (change_is_one n (fun i j r (_ : Datatypes.unit) => f i j r) S S' N) as [k [Hk E]].
  rewrite E. apply Rabs_le.
  pose proof (contribution_between (fun i j r (_ : Datatypes.unit) => f i j r) k (S k) tt (V k Hk)) as A.
  pose proof (contribution_between (fun i j r (_ : Datatypes.unit) => f i j r) k (S' k) tt (V' k Hk)) as B.
  assert (forall j : nat, (j < size (S k))%nat -> 0 <= f k j (row_at (S k) j) <= 1) by auto.
  assert (forall j : nat, (j < size (S' k))%nat -> 0 <= f k j (row_at (S' k) j) <= 1) by auto.
  specialize (A ltac:(assumption)). specialize (B ltac:(assumption)). lra.
Qed.

Theorem replace_one_length_proof : replace_one_length.
Proof.
  intros row x H. unfold replace_one_length.
  change (value squared_lengths []) with (value one_count []).
  apply (replace_one_count_proof row (fun i j r => length_steps (x i j r))).
  intros i j r. unfold length_steps. specialize (H i j r).
  set (v := Rmin (x i j r) 1 * 65536).
  assert (Hv : 0 <= v <= 65536).
  { unfold v. pose proof (Rmin_r (x i j r) 1). assert (0 <= Rmin (x i j r) 1) by (apply Rmin_glb; lra). lra. }
  destruct (base_Int_part v) as [A B].
  assert (0 <= IZR (Int_part v)).
  { apply IZR_le. assert (-1 < Int_part v)%Z by (apply lt_IZR; lra). lia. }
  lra.
Qed.

(** Counts: shares p and q of the cells of one column sum to at most one. *)
Lemma is_cell_between o a : 0 <= is_cell o a <= 1.
Proof. destruct o as [b|]; simpl; [destruct (Nat.eqb b a)|]; lra. Qed.

Lemma sum_is_cell m o : sum (range m) (is_cell o) <= 1.
Proof.
  destruct o as [b|]; [|rewrite sum_zero; [lra|reflexivity]].
  induction m as [|m IH]; [simpl; lra|]. rewrite sum_range_S.
  destruct (Nat.eq_dec b m) as [->|D].
  - rewrite sum_zero; [unfold is_cell; rewrite Nat.eqb_refl; lra|].
    intros i Hi. apply in_range in Hi. unfold is_cell.
    destruct (Nat.eqb_spec m i); [lia|reflexivity].
  - replace (is_cell (Some b) m) with 0; [lra|]. unfold is_cell.
    destruct (Nat.eqb_spec b m); [lia|reflexivity].
Qed.

Lemma column_shares {row} cell i (u : unit_of row) x m :
  valid u -> sum (range m) (fun a => contribution (in_cells cell) i u (x, a)) <= 1.
Proof.
  intros [Hs Ht]. unfold contribution. rewrite sum_swap.
  apply Rle_trans with (sum (range (size u)) (share u)); [|assumption].
  apply sum_le. intros j Hj. apply in_range in Hj. rewrite sum_scale.
  unfold in_cells. cbn [fst snd]. change (fun i0 => is_cell ?o i0) with (is_cell o).
  pose proof (sum_is_cell m (cell i j (row_at u j) x)). specialize (Hs j Hj). nra.
Qed.

Lemma squares_of_difference {I} (l : list I) p q :
  (forall i, In i l -> 0 <= p i <= 1 /\ 0 <= q i <= 1) ->
  sum l (fun i => (p i - q i) * (p i - q i)) <= sum l p + sum l q.
Proof. intros H. rewrite <- sum_plus. apply sum_le. intros i Hi. specialize (H i Hi). nra. Qed.

Theorem replace_one_counts_proof : replace_one_counts.
Proof.
  intros row cell d m n S S' V V' N.
  destruct (change_is_one n (in_cells cell) S S' N) as [k [Hk E]].
  set (p := contribution (in_cells cell) k (S k)) in *.
  set (q := contribution (in_cells cell) k (S' k)) in *.
  assert (Hp : forall x, 0 <= p x <= 1).
  { intros x. apply contribution_between; [auto|]. intros. apply is_cell_between. }
  assert (Hq : forall x, 0 <= q x <= 1).
  { intros x. apply contribution_between; [auto|]. intros. apply is_cell_between. }
  assert (Cp : forall x, sum (range m) (fun a => p (x, a)) <= 1) by (intros; apply column_shares; auto).
  assert (Cq : forall x, sum (range m) (fun a => q (x, a)) <= 1) by (intros; apply column_shares; auto).
  assert (Two : sum (range d) (fun _ => 2) = 2 * INR d).
  { rewrite sum_const, length_range. ring. }
  pose proof (pos_INR d). split; cbn.
  - unfold norm. apply sqrt_le_1_alt.
    rewrite <- Two. unfold dot, grid. rewrite sum_prod. apply sum_le. intros x _.
    rewrite (sum_ext _ _ (fun a => (p (x, a) - q (x, a)) * (p (x, a) - q (x, a))))
      by (intros; now rewrite E).
    pose proof (squares_of_difference (range m) (fun a => p (x, a)) (fun a => q (x, a))) as D.
    specialize (Cp x). specialize (Cq x). cbv beta in D.
    eapply Rle_trans; [apply D; auto|lra].
  - rewrite <- Two. unfold absolute, grid. rewrite sum_prod.
    apply sum_le. intros x _. specialize (Cp x). specialize (Cq x).
    apply Rle_trans with (sum (range m) (fun a => p (x, a) + q (x, a))).
    + apply sum_le. intros a _. rewrite E. specialize (Hp (x, a)). specialize (Hq (x, a)).
      apply Rabs_le. lra.
    + rewrite sum_plus. lra.
Qed.

(** Second moment: two contributions P and Q have norm at most one and a product of at least 0. *)
Lemma contribution_dot {row I} (l : list I) (f g : question row I) i (u v : unit_of row) :
  dot l (contribution f i u) (contribution g i v)
  = sum (range (size u)) (fun j => sum (range (size v)) (fun k =>
      share u j * share v k * dot l (f i j (row_at u j)) (g i k (row_at v k)))).
Proof.
  unfold dot at 1, contribution.
  transitivity (sum l (fun x => sum (range (size u)) (fun j => sum (range (size v)) (fun k =>
    share u j * share v k * (f i j (row_at u j) x * g i k (row_at v k) x))))).
  - apply sum_ext. intros x _. rewrite Rmult_comm, <- sum_scale. apply sum_ext. intros j _.
    rewrite Rmult_comm, <- sum_scale. apply sum_ext. intros. ring.
  - rewrite sum_swap. apply sum_ext. intros j _. rewrite sum_swap. apply sum_ext. intros k _.
    unfold dot. now rewrite <- sum_scale.
Qed.

Theorem replace_one_moment_proof : replace_one_moment.
Proof.
  intros row d a H n S S' V V' N. cbn.
  destruct (change_is_one n (square a) S S' N) as [k [Hk E]].
  set (P := contribution (square a) k (S k)) in *.
  set (Q := contribution (square a) k (S' k)) in *.
  rewrite (norm_ext _ _ (minus P Q)) by (intros; apply E).
  assert (F : forall i j r, norm (grid d d) (square a i j r) <= 1).
  { intros. unfold square, grid. rewrite norm_outer. specialize (H i j r).
    pose proof (norm_nonneg (range d) (a i j r)). nra. }
  assert (HP : norm (grid d d) P <= 1) by (apply contribution_norm; auto; lra).
  assert (HQ : norm (grid d d) Q <= 1) by (apply contribution_norm; auto; lra).
  assert (D : 0 <= dot (grid d d) P Q).
  { unfold P, Q. rewrite contribution_dot. apply sum_nonneg. intros j Hj. apply sum_nonneg.
    intros i Hi. apply in_range in Hj. apply in_range in Hi.
    unfold square, grid. rewrite dot_outer.
    destruct (V k Hk) as [A _]. destruct (V' k Hk) as [B _].
    apply Rmult_le_pos; [apply Rmult_le_pos; auto|]. apply Rle_0_sqr. }
  unfold norm. apply sqrt_le_1_alt. rewrite dot_minus_square.
  apply norm_le_square in HP. apply norm_le_square in HQ. lra.
Qed.

Theorem packed_norm_proof : packed_norm.
Proof.
  intros n M Sym. unfold norm. f_equal. unfold dot, upper, grid.
  rewrite sum_filter, !sum_prod.
  set (l := range n). set (sq := fun i j => M (i, j) * M (i, j)).
  assert (Hs : forall i j, sq i j = sq j i) by (intros; unfold sq; now rewrite (Sym i j)).
  set (less := fun i j => if Nat.ltb i j then sq i j else 0).
  set (same := fun i j => if Nat.eqb i j then sq i j else 0).
  transitivity (sum l (fun i => sum l (fun j => 2 * less i j + same i j))).
  - apply sum_ext. intros i _. apply sum_ext. intros j _. unfold packed, less, same, sq. simpl.
    assert (R2 : sqrt 2 * sqrt 2 = 2) by (apply sqrt_sqrt; lra).
    destruct (Nat.leb_spec i j), (Nat.ltb_spec i j), (Nat.eqb_spec i j); try lia; try ring.
    replace (M (i, j) * sqrt 2 * (M (i, j) * sqrt 2)) with (M (i, j) * M (i, j) * (sqrt 2 * sqrt 2)) by ring.
    rewrite R2. ring.
  - transitivity (sum l (fun i => sum l (fun j => less i j)) + sum l (fun i => sum l (fun j => less j i))
                  + sum l (fun i => sum l (fun j => same i j))).
    + rewrite (sum_swap l l (fun i j => less j i)), <- !sum_plus. apply sum_ext. intros i _.
      rewrite <- !sum_plus. apply sum_ext. intros. ring.
    + rewrite <- !sum_plus. apply sum_ext. intros i _. rewrite <- !sum_plus. apply sum_ext. intros j _.
      unfold less, same. rewrite (Hs j i). fold (sq i j).
      destruct (Nat.ltb_spec i j), (Nat.ltb_spec j i), (Nat.eqb_spec i j); try lia; ring.
Qed.

(** Shares *)

Theorem person_is_valid_proof : person_is_valid.
Proof.
  intros row q k rows Hk. assert (P : 0 < 2 ^ q) by (apply pow_lt; lra).
  assert (K : 0 < INR k) by now apply lt_0_INR.
  unfold valid. cbn [size share]. unfold person_share. split.
  - intros. apply Rmult_le_pos; [|left; now apply Rinv_0_lt_compat].
    apply IZR_le. apply Z.div_pos; lia.
  - rewrite sum_const, length_range, INR_IZR_INZ. unfold Rdiv. rewrite <- Rmult_assoc, <- mult_IZR.
    assert (A : (Z.of_nat k * (2 ^ Z.of_nat q / Z.of_nat k) <= 2 ^ Z.of_nat q)%Z) by (apply Z.mul_div_le; lia).
    apply IZR_le in A. rewrite <- pow_IZR in A.
    apply Rmult_le_reg_r with (2 ^ q); [assumption|]. rewrite Rmult_assoc, Rinv_l; lra.
Qed.

Theorem weighted_record_is_valid_proof : weighted_record_is_valid.
Proof. intros row w r H. split; simpl; [intros; lra|lra]. Qed.

Theorem sums_written_out_proof : sums_written_out.
Proof.
  split; [|split].
  - reflexivity.
  - intros q k Hk. unfold person_share. cbn.
    rewrite INR_IZR_INZ, pow_IZR, int_part_quotient by lia. reflexivity.
  - intros M i j D. unfold packed. cbn. apply Nat.eqb_neq in D. now rewrite D.
Qed.
