(** Proofs of section 5 about IEEE 754 arithmetic. *)
From Coq Require Import Reals String List Psatz ZArith Lia.
From Flocq Require Import Core Relative Plus_error.
From Machine Require Import Formulas Statements.
Import ListNotations.
Open Scope R_scope.

Lemma model_of_sums emin prec (P : Prec_gt_0 prec) x y :
  generic_format radix2 (FLT_exp emin prec) x -> generic_format radix2 (FLT_exp emin prec) y ->
  exists d, Rabs d <= / 2 * bpow radix2 (- prec + 1)
    /\ round radix2 (FLT_exp emin prec) ZnearestE (x + y) = (x + y) * (1 + d).
Proof.
  intros Hx Hy.
  destruct (FLT_plus_error_N_ex radix2 emin prec (fun n => negb (Z.even n)) x y Hx Hy) as [d [Hd E]].
  exists d. split; [|exact E]. eapply Rle_trans; [exact Hd|].
  pose proof (u_ro_pos radix2 prec) as U. unfold u_ro in *.
  set (u := / 2 * bpow radix2 (- prec + 1)) in *.
  apply Rmult_le_reg_r with (1 + u); [lra|]. unfold Rdiv. rewrite Rmult_assoc, Rinv_l; nra.
Qed.

Lemma model_of_numbers emin prec (P : Prec_gt_0 prec) x :
  bpow radix2 (emin + prec - 1) <= Rabs x ->
  exists d, Rabs d <= / 2 * bpow radix2 (- prec + 1)
    /\ round radix2 (FLT_exp emin prec) ZnearestE x = x * (1 + d).
Proof. intros H. now apply relative_error_N_FLT_ex. Qed.

Lemma unit_of_float64 : / 2 * bpow radix2 (- (53) + 1) = / 2 ^ 53.
Proof.
  change (bpow radix2 (- (53) + 1)) with (/ IZR 4503599627370496).
  rewrite <- Rinv_mult. f_equal. lra.
Qed.

Lemma unit_of_float32 : / 2 * bpow radix2 (- (24) + 1) = / 2 ^ 24.
Proof.
  change (bpow radix2 (- (24) + 1)) with (/ IZR 8388608). rewrite <- Rinv_mult. f_equal. lra.
Qed.

Theorem float64_follows_the_model_proof : float64_follows_the_model.
Proof.
  unfold float64_follows_the_model, float64, round64. cbn -[pow bpow].
  rewrite <- unit_of_float64. split; intros; [apply model_of_sums; auto|apply model_of_numbers; auto];
    reflexivity.
Qed.

Theorem float32_follows_the_model_proof : float32_follows_the_model.
Proof.
  unfold float32_follows_the_model, float32, round32. cbn -[pow bpow].
  rewrite <- unit_of_float32. split; intros; [apply model_of_sums; auto|apply model_of_numbers; auto];
    reflexivity.
Qed.

Theorem whole_sums_are_exact_proof : whole_sums_are_exact.
Proof.
  intros e m k He H. unfold round64. rewrite <- Rmult_plus_distr_r, <- plus_IZR.
  apply round_generic; [apply valid_rnd_N|].
  apply generic_format_FLT. exists (Float radix2 (m + k) e); [reflexivity|exact H|exact He].
Qed.
