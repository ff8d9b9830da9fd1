(** Proofs of section 2: rows of norm at most one, and clipped gradients. *)
From Coq Require Import Reals String List Psatz ZArith Lia.
From Machine Require Import Formulas Statements Vectors Sums.
Import ListNotations.
Open Scope R_scope.

Theorem clipped_norm_proof : clipped_norm.
Proof.
  intros I l c u Hc. unfold clipped, scaled. rewrite norm_scale.
  pose proof (norm_nonneg l u) as [P|Z].
  - assert (0 <= c / norm l u) by (apply Rmult_le_pos; [assumption|left; now apply Rinv_0_lt_compat]).
    rewrite Rabs_pos_eq by (apply Rmin_glb; lra).
    apply Rle_trans with (c / norm l u * norm l u).
    + apply Rmult_le_compat_r; [lra|apply Rmin_r].
    + unfold Rdiv. rewrite Rmult_assoc, Rinv_l; lra.
  - rewrite <- Z. lra.
Qed.

Lemma with_constant_square columns u c :
  dot (range (1 + columns)) (with_constant columns u c) (with_constant columns u c)
  = dot (range columns) u u + c * c.
Proof.
  unfold dot. simpl (1 + columns)%nat. rewrite sum_range_S. f_equal.
  - apply sum_ext. intros i Hi. apply in_range in Hi. unfold with_constant.
    destruct (Nat.ltb_spec i columns); [reflexivity|lia].
  - unfold with_constant. destruct (Nat.ltb_spec columns columns); [lia|reflexivity].
Qed.

(** A vector over a number that is at least its norm. *)
Lemma norm_over {I} (l : list I) u r : 0 < r -> dot l u u <= r * r -> norm l (scaled (/ r) u) <= 1.
Proof.
  intros Hr H. unfold scaled. rewrite norm_scale.
  rewrite Rabs_pos_eq by (left; now apply Rinv_0_lt_compat).
  apply norm_le in H; [|lra].
  apply Rle_trans with (/ r * r); [|rewrite Rinv_l; lra].
  apply Rmult_le_compat_l; [left; now apply Rinv_0_lt_compat|assumption].
Qed.

Theorem first_row_norm_proof : first_row_norm.
Proof.
  intros columns c x. unfold first_row.
  assert (P : 0 < 1 + c ^ 2) by nra.
  apply norm_over; [now apply sqrt_lt_R0|]. rewrite sqrt_sqrt by lra. rewrite with_constant_square.
  pose proof (clipped_norm_proof nat (range columns) 1 x Rle_0_1) as H.
  apply norm_le_square in H. nra.
Qed.

Theorem final_row_norm_proof : final_row_norm.
Proof.
  intros columns r c image Hr. unfold final_row.
  set (m := Rmax (sqrt (r ^ 2 + c ^ 2)) 1).
  assert (M1 : 1 <= m) by apply Rmax_r.
  assert (M2 : sqrt (r ^ 2 + c ^ 2) <= m) by apply Rmax_l.
  apply norm_over; [lra|]. rewrite with_constant_square.
  pose proof (clipped_norm_proof nat (range columns) r image Hr) as H.
  apply norm_le_square in H.
  assert (S : sqrt (r ^ 2 + c ^ 2) * sqrt (r ^ 2 + c ^ 2) = r ^ 2 + c ^ 2) by (apply sqrt_sqrt; nra).
  pose proof (sqrt_pos (r ^ 2 + c ^ 2)). nra.
Qed.

Theorem slope_of_two_clip_proof : slope_of_two_clip.
Proof.
  intros y s Hy. unfold slope_of_two. cbn. set (m := Rmax (1 + exp (Rmin (y * s) 40)) 2).
  assert (2 <= m) by apply Rmax_r.
  assert (Y : Rabs y = 1) by (destruct Hy; subst; [apply Rabs_R1|rewrite Rabs_left; lra]).
  unfold Rdiv. rewrite Rabs_mult, Y, Rmult_1_l, Rabs_inv.
  rewrite Rabs_pos_eq by lra. rewrite Rmult_1_l. apply Rinv_le_contravar; lra.
Qed.

Theorem slopes_of_many_clip_proof : slopes_of_many_clip.
Proof.
  intros K y s. unfold slopes_of_many. cbn.
  set (found := minus (indicator y) (softmax K s)).
  set (c := sqrt (1 / 2)).
  assert (C : 0 < c) by (apply sqrt_lt_R0; lra).
  unfold scaled. rewrite norm_scale.
  set (m := Rmax (norm (range K) found) c).
  assert (c <= m) by apply Rmax_r. assert (norm (range K) found <= m) by apply Rmax_l.
  rewrite Rabs_pos_eq by (apply Rmult_le_pos; [lra|left; apply Rinv_0_lt_compat; lra]).
  apply Rle_trans with (c / m * m).
  - apply Rmult_le_compat_l; [|assumption].
    apply Rmult_le_pos; [lra|left; apply Rinv_0_lt_compat; lra].
  - unfold Rdiv. rewrite Rmult_assoc, Rinv_l; lra.
Qed.

Theorem replace_one_gradient_of_two_proof : replace_one_gradient_of_two.
Proof.
  intros d rows w Short n S S' [V E] [V' E'] N. cbn.
  assert (H : forall i j r, (sign_of r = 1 \/ sign_of r = -1) -> 0 <= weight_of r <= 1 ->
    norm (range d) (gradient_of_two d rows w i j r) <= 1 / 2).
  { intros i j r Hs Hw. unfold gradient_of_two. rewrite norm_scale.
    pose proof (slope_of_two_clip_proof (sign_of r) (dot (range d) (rows i j r) w) Hs) as P.
    cbn in P.
    pose proof (Short i j r) as Q. pose proof (norm_nonneg (range d) (rows i j r)).
    rewrite Rabs_mult, (Rabs_pos_eq (weight_of r)) by lra.
    set (p := Rabs (slope_of_two _ _)) in *. assert (0 <= p) by apply Rabs_pos.
    assert (0 <= weight_of r * p <= 1 / 2) by nra. nra. }
  apply replace_one_sum_of; auto; try lra; intros i j Hi Hj.
  - destruct (E i j Hi Hj). now apply H.
  - destruct (E' i j Hi Hj). now apply H.
Qed.

Theorem replace_one_gradient_of_many_proof : replace_one_gradient_of_many.
Proof.
  intros d K rows w Short n S S' [V E] [V' E'] N. cbn.
  assert (C : 0 <= sqrt (1 / 2)) by apply sqrt_pos.
  assert (H : forall i j r, 0 <= weight_of r <= 1 ->
    norm (grid d K) (gradient_of_many d K rows w i j r) <= sqrt (1 / 2)).
  { intros i j r Hw. unfold gradient_of_many.
    set (p := slopes_of_many _ _ _).
    rewrite (norm_ext _ _ (fun x => weight_of r * (rows i j r (fst x) * p (snd x))))
      by (intros; ring).
    rewrite (norm_scale (grid d K) (weight_of r) (fun x => rows i j r (fst x) * p (snd x))).
    unfold grid. rewrite norm_outer, Rabs_pos_eq by lra.
    pose proof (slopes_of_many_clip_proof K (class_of r) (fun k => dot (range d) (rows i j r) (w k))) as P.
    fold p in P. cbn in P.
    pose proof (Short i j r) as Q. pose proof (norm_nonneg (range d) (rows i j r)).
    pose proof (norm_nonneg (range K) p).
    assert (0 <= norm (range d) (rows i j r) * norm (range K) p <= sqrt (1 / 2)) by nra. nra. }
  apply replace_one_sum_of; auto; intros i j Hi Hj.
  - destruct (E i j Hi Hj). now apply H.
  - destruct (E' i j Hi Hj). now apply H.
Qed.

Theorem rows_written_out_proof : rows_written_out.
Proof.
  repeat split; intros; unfold first_row, final_row; cbn; repeat f_equal; ring.
Qed.

Theorem slopes_written_out_proof : slopes_written_out.
Proof. split; intros; reflexivity. Qed.
