(** Proofs of section 5 about a whole step. *)
From Coq Require Import Reals String List Psatz ZArith Lia.
From Machine Require Import Formulas Statements Vectors Sums Rounding.
Import ListNotations.
Open Scope R_scope.

(** ** A map on the columns of a matrix *)

Definition applied (columns : nat) (map v : nat * nat -> R) : nat * nat -> R :=
  fun x => sum (range columns) (fun j => map (fst x, j) * v (j, snd x)).

Lemma applied_minus columns map v w x :
  minus (applied columns map v) (applied columns map w) x = applied columns map (minus v w) x.
Proof. unfold minus, applied. rewrite <- sum_minus. apply sum_ext. intros. ring. Qed.

Lemma by_classes outputs classes (v : nat * nat -> R) :
  dot (grid outputs classes) v v
  = sum (range classes) (fun k => dot (range outputs) (fun x => v (x, k)) (fun x => v (x, k))).
Proof. unfold dot, grid. rewrite sum_prod. apply sum_swap. Qed.

Lemma applied_norm outputs columns classes stretch map :
  0 <= stretch ->
  (forall v, norm (range outputs) (mapped_row columns map v) <= stretch * norm (range columns) v) ->
  forall v, norm (grid outputs classes) (applied columns map v) <= stretch * norm (grid columns classes) v.
Proof.
  intros Hs H v. pose proof (norm_nonneg (grid columns classes) v) as P.
  apply norm_le; [now apply Rmult_le_pos|].
  replace (stretch * norm (grid columns classes) v * (stretch * norm (grid columns classes) v))
    with (stretch * stretch * dot (grid columns classes) v v) by (rewrite <- norm_square; ring).
  rewrite !by_classes, <- sum_scale. apply sum_le. intros k _.
  specialize (H (fun j => v (j, k))). apply norm_le_square in H.
  rewrite <- (norm_square (range columns)).
  set (m := norm (range columns) (fun j => v (j, k))) in *.
  replace (stretch * stretch * (m * m)) with (stretch * m * (stretch * m)) by ring. exact H.
Qed.

(** The image of a sum over rows is the sum over mapped rows. *)
Lemma applied_total {row} columns map (q z : nat -> nat -> row -> nat -> R) n S x :
  applied columns map (total n (slopes_times_rows q z) S) x
  = total n (slopes_times_rows q (fun i j r => mapped_row columns map (z i j r))) S x.
Proof.
  unfold applied. rewrite total_is_sum.
  transitivity (sum (range columns) (fun j => sum (row_places n S) (fun place =>
    map (fst x, j) * row_term (slopes_times_rows q z) S (j, snd x) place))).
  - apply sum_ext. intros j _. rewrite total_is_sum. now rewrite <- sum_scale.
  - rewrite sum_swap. apply sum_ext. intros place _. unfold row_term, slopes_times_rows, mapped_row.
    cbn [fst snd]. set (c := share (S (fst place)) (snd place)).
    set (s := q _ _ _ _). set (w := z _ _ _).
    replace (c * (sum (range columns) (fun j => map (fst x, j) * w j) * s))
      with (c * s * sum (range columns) (fun j => map (fst x, j) * w j)) by ring.
    rewrite <- sum_scale. apply sum_ext. intros. ring.
Qed.

(** ** The last column *)

Lemma norm_split outputs classes (v : nat * nat -> R) :
  norm (grid (1 + outputs) classes) v
  <= norm (grid outputs classes) v + norm (range classes) (fun k => v (outputs, k)).
Proof.
  pose proof (norm_nonneg (grid outputs classes) v) as P.
  pose proof (norm_nonneg (range classes) (fun k => v (outputs, k))) as Q.
  apply norm_le; [lra|].
  assert (E : dot (grid (1 + outputs) classes) v v
    = dot (grid outputs classes) v v
      + dot (range classes) (fun k => v (outputs, k)) (fun k => v (outputs, k))).
  { unfold dot, grid. rewrite !sum_prod. simpl (1 + outputs)%nat. now rewrite sum_range_S. }
  rewrite E, <- !norm_square. nra.
Qed.

(** The error of a product with a map, relative to the norms. *)
Lemma product_norm outputs columns classes stretch map sums (answer : nat * nat -> R) u :
  0 <= u -> 0 <= stretch -> INR (columns + 4) * u <= / 1000 ->
  norm (grid outputs columns) map <= stretch * sqrt (INR columns + 2) ->
  (forall x k, (x < outputs)%nat ->
    Rabs (answer (x, k) - sum (range columns) (fun j => map (x, j) * sums (j, k)))
    <= growth u (columns + 4) * sum (range columns) (fun j => Rabs (map (x, j) * sums (j, k)))) ->
  norm (grid outputs classes) (minus answer (applied columns map sums))
  <= 1.004 * ((INR columns + 4) * u) * (stretch * sqrt (INR columns + 2)) * norm (grid columns classes) sums.
Proof.
  intros Hu Hs Small F C. set (relative := growth u (columns + 4)) in *.
  assert (R0 : 0 <= relative) by now apply growth_nonneg.
  assert (G : relative <= 1.004 * (INR (columns + 4) * u)) by (apply growth_first_order; [lra|lia|lra]).
  rewrite plus_INR in G. replace (INR 4) with 4 in G by (simpl; ring).
  apply Rle_trans with (relative * (norm (grid outputs columns) map * norm (grid columns classes) sums)).
  - eapply Rle_trans; [apply (norm_monotone _ _ (fun x => relative *
      sum (range columns) (fun j => Rabs (map (fst x, j) * sums (j, snd x)))))|].
    + intros [x k] Hx. apply in_prod_iff in Hx. destruct Hx as [Hx _]. apply in_range in Hx.
      now apply C.
    + rewrite norm_scale, Rabs_pos_eq by assumption. apply Rmult_le_compat_l; [assumption|].
      apply absolute_product.
  - rewrite <- Rmult_assoc. apply Rmult_le_compat_r; [apply norm_nonneg|].
    apply Rmult_le_compat; auto using norm_nonneg.
Qed.

(** ** The error of one step *)

Section Step.
Context {row : Type} (outputs columns classes n b blocks : nat).
Context (clip evaluation mapped stretch constant : R) (map : nat * nat -> R).
Context (z p computed_p : nat -> nat -> row -> nat -> R) (u eta : R).
Context (Hc : 0 <= clip) (Hs : 256 <= stretch) (Hk : Rabs constant <= 1) (Hu : 0 < u <= / 100000).
Context (He : 0 <= eta <= clip / 1000).
Context (Small : INR (b + blocks + 5) * u <= / 1000) (Small' : INR (columns + 4) * u <= / 1000).
Context (Op : forall v,
  norm (range outputs) (mapped_row columns map v) <= stretch * norm (range columns) v).
Context (Fro : norm (grid outputs columns) map <= stretch * sqrt (INR columns + 2)).
Context (Hz : forall i j r, norm (range columns) (z i j r) <= 1).
Context (Hf : forall i j r,
  norm (range (1 + outputs)) (final_of outputs columns map constant (z i j r)) <= 1 + / 2 ^ 40).
Context (Hp : forall i j r, norm (range classes) (p i j r) <= clip).
Context (Hcp : forall i j r, norm (range classes) (minus (computed_p i j r) (p i j r)) <= eta).

Definition final : nat -> nat -> row -> nat -> R :=
  fun i j r => final_of outputs columns map constant (z i j r).

Lemma outer_norm (q w : nat -> nat -> row -> nat -> R) d a c :
  0 <= a -> 0 <= c ->
  (forall i j r, norm (range d) (w i j r) <= a) -> (forall i j r, norm (range classes) (q i j r) <= c) ->
  forall i j r, norm (grid d classes) (slopes_times_rows q w i j r) <= a * c.
Proof.
  intros Ha H0 Hw Hq i j r. unfold slopes_times_rows, grid. rewrite norm_outer.
  apply Rmult_le_compat; auto using norm_nonneg.
Qed.

Lemma computed_slopes i j r : norm (range classes) (computed_p i j r) <= clip + eta.
Proof.
  rewrite (norm_ext _ _ (fun k => minus (computed_p i j r) (p i j r) k + p i j r k))
    by (unfold minus; intros; ring).
  eapply Rle_trans; [apply norm_triangle|]. specialize (Hp i j r). specialize (Hcp i j r). lra.
Qed.

(** The slopes as computed instead of the exact ones, with final rows. *)
Lemma slopes_part S : all_valid n S ->
  norm (grid (1 + outputs) classes)
    (minus (total n (slopes_times_rows computed_p final) S) (total n (slopes_times_rows p final) S))
  <= INR n * ((1 + / 2 ^ 40) * eta).
Proof.
  intros V. set (q := fun i j r => minus (computed_p i j r) (p i j r)).
  assert (T : 0 <= / 2 ^ 40) by (left; apply Rinv_0_lt_compat; lra).
  assert (O : forall i j r, norm (grid (1 + outputs) classes) (slopes_times_rows q final i j r)
    <= (1 + / 2 ^ 40) * eta) by (apply outer_norm; auto; lra).
  eapply Rle_trans; [|apply (absolute_terms (grid (1 + outputs) classes) n (slopes_times_rows q final) S
    ((1 + / 2 ^ 40) * eta) V); [apply Rmult_le_pos; lra|exact O]].
  apply norm_monotone. intros x _. unfold minus. rewrite !total_is_sum, <- sum_minus.
  eapply Rle_trans; [apply sum_abs|]. apply sum_le. intros place _. right. f_equal.
  unfold row_term, slopes_times_rows, q, minus. ring.
Qed.

Definition gamma : R := growth u (4 + b + blocks + 1).

Lemma gamma_bound : 0 <= gamma <= 1.004 * ((INR b + INR blocks + 8) * u) /\ gamma <= / 800.
Proof.
  assert (M : (INR b + INR blocks + 8) * u <= / 900).
  { rewrite !plus_INR in Small. simpl (INR 5) in Small. lra. }
  assert (G : gamma <= 1.004 * ((INR b + INR blocks + 8) * u)).
  { unfold gamma. apply Rle_trans with (growth u (b + blocks + 8)).
    - unfold growth. apply Rplus_le_compat_r. apply Rmult_le_compat_r; [lra|]. apply power_le; [lra|lia].
    - replace (INR b + INR blocks + 8) with (INR (b + blocks + 8)) in * by (rewrite !plus_INR; simpl; ring).
      apply growth_first_order; [lra|lia|lra]. }
  split; [split; [apply growth_nonneg; lra|assumption]|lra].
Qed.

Lemma step_error S answer :
  all_valid n S ->
  (exists (sums : nat * nat -> R) (last : nat -> R),
    computed gamma n (slopes_times_rows computed_p z) S sums
    /\ computed gamma n (fun i j r k => constant * computed_p i j r k) S last
    /\ (forall x k, (x < outputs)%nat ->
         Rabs (answer (x, k) - sum (range columns) (fun j => map (x, j) * sums (j, k)))
         <= growth u (columns + 4) * sum (range columns) (fun j => Rabs (map (x, j) * sums (j, k))))
    /\ (forall k, answer (outputs, k) = last k)) ->
  norm (grid (1 + outputs) classes) (minus answer (total n (slopes_times_rows p final) S))
  <= 1.01 * ((INR columns + 4) * u) * (stretch * sqrt (INR columns + 2)) * (INR n * clip)
     + stretch * (1.01 * ((INR b + INR blocks + 8) * u) * (INR n * clip))
     + INR n * ((1 + / 2 ^ 40) * eta).
Proof.
  intros V [sums [last [C1 [C2 [C3 C4]]]]].
  destruct gamma_bound as [[G0 G] G'].
  set (f := slopes_times_rows computed_p z) in *.
  assert (Ff : forall i j r, norm (grid columns classes) (f i j r) <= 1 * (clip + eta))
    by (apply outer_norm; auto using computed_slopes; lra).
  assert (Ff' : forall i j r, norm (grid columns classes) (f i j r) <= clip + eta)
    by (intros i j r; specialize (Ff i j r); lra).
  assert (CE : 0 <= clip + eta) by lra.
  pose proof (computed_norm (grid columns classes) n f S (clip + eta) gamma sums V CE G0 Ff' C1) as E1.
  (* The constant column. *)
  set (g := fun (i j : nat) (r : row) (k : nat) => constant * computed_p i j r k) in *.
  assert (Fg : forall i j r, norm (range classes) (g i j r) <= clip + eta).
  { intros i j r. unfold g. rewrite norm_scale. pose proof (computed_slopes i j r).
    pose proof (norm_nonneg (range classes) (computed_p i j r)). pose proof (Rabs_pos constant). nra. }
  pose proof (computed_norm (range classes) n g S (clip + eta) gamma last V CE G0 Fg C2) as E2.
  (* The sums themselves. *)
  assert (T : norm (grid columns classes) (total n f S) <= INR n * (clip + eta)).
  { eapply Rle_trans; [|apply (absolute_terms (grid columns classes) n f S (clip + eta) V CE Ff')].
    apply norm_monotone. intros x _. rewrite total_is_sum. apply sum_abs. }
  pose proof (pos_INR n) as N.
  assert (W : 0 <= INR n * (clip + eta)) by (apply Rmult_le_pos; lra).
  assert (Sz : norm (grid columns classes) sums <= 1.00125 * (INR n * (clip + eta))).
  { rewrite (norm_ext _ sums (fun x => minus sums (total n f S) x + total n f S x))
      by (unfold minus; intros; ring).
    eapply Rle_trans; [apply norm_triangle|].
    assert (gamma * (INR n * (clip + eta)) <= / 800 * (INR n * (clip + eta))) by (apply Rmult_le_compat_r; lra).
    lra. }
  pose proof (product_norm outputs columns classes stretch map sums answer u ltac:(lra) ltac:(lra) Small' Fro C3) as P.
  pose proof (applied_norm outputs columns classes stretch map ltac:(lra) Op (minus sums (total n f S))) as Q.
  set (exact := total n (slopes_times_rows computed_p final) S).
  assert (Rows : norm (grid outputs classes) (minus answer exact)
    <= 1.004 * ((INR columns + 4) * u) * (stretch * sqrt (INR columns + 2)) * norm (grid columns classes) sums
       + stretch * norm (grid columns classes) (minus sums (total n f S))).
  { rewrite (norm_ext _ (minus answer exact)
      (fun x => minus answer (applied columns map sums) x + applied columns map (minus sums (total n f S)) x)).
    - eapply Rle_trans; [apply norm_triangle|]. lra.
    - intros [x k] Hx. apply in_prod_iff in Hx. destruct Hx as [Hx _]. apply in_range in Hx.
      rewrite <- applied_minus. unfold minus.
      replace (exact (x, k)) with (applied columns map (total n f S) (x, k)); [ring|].
      unfold f. rewrite applied_total. unfold exact. rewrite !total_is_sum. apply sum_ext.
      intros place _. unfold row_term, slopes_times_rows, final, final_of, with_constant. cbn [fst snd].
      destruct (Nat.ltb_spec x outputs); [reflexivity|lia]. }
  assert (Last : norm (range classes) (fun k => minus answer exact (outputs, k)) <= gamma * (INR n * (clip + eta))).
  { rewrite (norm_ext _ _ (minus last (total n g S))); [exact E2|].
    intros k _. unfold minus. rewrite C4. f_equal. unfold exact. rewrite !total_is_sum. apply sum_ext.
    intros place _. unfold row_term, slopes_times_rows, final, final_of, with_constant, g. cbn [fst snd].
    destruct (Nat.ltb_spec outputs outputs); [lia|ring]. }
  pose proof (slopes_part S V) as D. fold exact in D.
  rewrite (norm_ext _ (minus answer (total n (slopes_times_rows p final) S))
    (fun x => minus answer exact x + minus exact (total n (slopes_times_rows p final) S) x))
    by (unfold minus; intros; ring).
  eapply Rle_trans; [apply norm_triangle|].
  pose proof (norm_split outputs classes (minus answer exact)) as Sp.
  apply Rplus_le_compat; [|exact D]. eapply Rle_trans; [exact Sp|].
  assert (NC : 0 <= INR n * clip) by (apply Rmult_le_pos; lra).
  assert (CC : INR n * (clip + eta) <= 1.001 * (INR n * clip)).
  { replace (1.001 * (INR n * clip)) with (INR n * (clip + clip / 1000)) by lra.
    apply Rmult_le_compat_l; lra. }
  pose proof (pos_INR columns). pose proof (pos_INR b). pose proof (pos_INR blocks).
  pose proof (sqrt_pos (INR columns + 2)). set (r := sqrt (INR columns + 2)) in *.
  assert (K : 0 <= (INR columns + 4) * u * (stretch * r)).
  { apply Rmult_le_pos; apply Rmult_le_pos; lra. }
  assert (X : 1.004 * ((INR columns + 4) * u) * (stretch * r) * norm (grid columns classes) sums
    <= 1.01 * ((INR columns + 4) * u) * (stretch * r) * (INR n * clip)).
  { apply Rle_trans with (1.004 * ((INR columns + 4) * u) * (stretch * r) * (1.00125 * 1.001 * (INR n * clip))).
    - apply Rmult_le_compat_l; lra.
    - set (h := (INR columns + 4) * u * (stretch * r)) in *.
      assert (0 <= h * (INR n * clip)) by now apply Rmult_le_pos.
      replace (1.004 * ((INR columns + 4) * u) * (stretch * r) * (1.00125 * 1.001 * (INR n * clip)))
        with (1.004 * 1.00125 * 1.001 * (h * (INR n * clip))) by (unfold h; lra).
      replace (1.01 * ((INR columns + 4) * u) * (stretch * r) * (INR n * clip))
        with (1.01 * (h * (INR n * clip))) by (unfold h; lra). lra. }
  set (m := (INR b + INR blocks + 8) * u) in *.
  assert (M0 : 0 <= m) by (unfold m; apply Rmult_le_pos; lra).
  assert (Y : gamma * (INR n * (clip + eta)) <= 1.004 * 1.001 * (m * (INR n * clip))).
  { replace (1.004 * 1.001 * (m * (INR n * clip))) with (1.004 * m * (1.001 * (INR n * clip))) by lra.
    apply Rmult_le_compat; lra. }
  assert (MN : 0 <= m * (INR n * clip)) by now apply Rmult_le_pos.
  assert (Y2 : stretch * norm (grid columns classes) (minus sums (total n f S))
    <= stretch * (1.004 * 1.001 * (m * (INR n * clip)))) by (apply Rmult_le_compat_l; lra).
  assert (Y3 : 1.004 * 1.001 * (m * (INR n * clip)) + stretch * (1.004 * 1.001 * (m * (INR n * clip)))
    <= stretch * (1.01 * m * (INR n * clip))).
  { set (h := m * (INR n * clip)) in *.
    assert (256 * h <= stretch * h) by (apply Rmult_le_compat_r; lra).
    replace (stretch * (1.01 * m * (INR n * clip))) with (1.01 * (stretch * h)) by (unfold h; lra).
    lra. }
  lra.
Qed.
End Step.

Theorem replace_one_step_float64_proof : replace_one_step_float64.
Proof.
  intros row outputs columns classes n b blocks clip ev mapped stretch constant map z p cp u eta
    Hc Hev Hm Hs Hk Small Small' Eta Op Fro Hz Hf Hp Hcp S S' answer answer' V V' N C C'.
  assert (U' : u = / 2 ^ 53) by reflexivity.
  assert (Hu : 0 < u <= / 100000).
  { rewrite U'. split; [apply Rinv_0_lt_compat; lra|apply Rinv_le_contravar; lra]. }
  pose proof (pos_INR columns) as Hd. pose proof (pos_INR n) as Hn.
  assert (M0 : 0 <= 1 / 2 * (INR columns + 5) * mapped) by (apply Rmult_le_pos; lra).
  assert (E0 : 0 <= eta) by (unfold eta; apply Rmult_le_pos; lra).
  pose proof (step_error outputs columns classes n b blocks clip stretch constant map z p cp u eta
    Hc Hs Hk Hu (conj E0 Eta) Small Small' Op Fro Hz Hf Hp Hcp) as Err.
  pose proof (Err S answer V C) as P. pose proof (Err S' answer' V' C') as Q. clear Err.
  set (q := final outputs columns constant map z) in *.
  assert (T : 0 <= / 2 ^ 40 <= / 1000).
  { split; [left; apply Rinv_0_lt_compat; lra|apply Rinv_le_contravar; lra]. }
  assert (B : norm (grid (1 + outputs) classes)
    (minus (total n (slopes_times_rows p q) S) (total n (slopes_times_rows p q) S'))
    <= 2 * ((1 + / 2 ^ 40) * clip)).
  { apply (replace_one_sum_proof row (nat * nat)%type); auto; [apply Rmult_le_pos; lra|].
    apply outer_norm; auto; lra. }
  eapply Rle_trans; [apply (apart _ _ _ _ _ _ _ _ B P Q)|].
  cbn -[pow sqrt INR]. rewrite <- U'. set (r := sqrt (INR columns + 2)).
  set (m := INR b + INR blocks).
  assert (A : INR n * ((1 + / 2 ^ 40) * eta)
    <= INR n * (101 / 100 * u * (1 / 2) * (INR columns + 5) * mapped)
       + stretch * (101 / 100 * (u * (ev * INR n)))).
  { assert (X1 : 0 <= INR n * (u * (1 / 2 * (INR columns + 5) * mapped)))
      by (apply Rmult_le_pos; [lra|apply Rmult_le_pos; lra]).
    assert (X2 : 0 <= u * (ev * INR n)) by (apply Rmult_le_pos; [lra|apply Rmult_le_pos; lra]).
    assert (X3 : 256 * (u * (ev * INR n)) <= stretch * (u * (ev * INR n))) by (apply Rmult_le_compat_r; lra).
    assert (X4 : INR n * ((1 + / 2 ^ 40) * eta)
      = (1 + / 2 ^ 40) * (INR n * (u * (1 / 2 * (INR columns + 5) * mapped)) + u * (ev * INR n)))
      by (unfold eta; ring).
    rewrite X4. set (t := / 2 ^ 40) in *.
    set (x := INR n * (u * (1 / 2 * (INR columns + 5) * mapped))) in *. set (y := u * (ev * INR n)) in *.
    assert ((1 + t) * (x + y) <= 1.001 * (x + y)) by (apply Rmult_le_compat_r; lra).
    replace (INR n * (101 / 100 * u * (1 / 2) * (INR columns + 5) * mapped)) with (1.01 * x) by (unfold x; lra).
    lra. }
  set (t := / 2 ^ 40) in *.
  set (lhs := INR n * ((1 + t) * eta)) in *.
  set (NC := INR n * clip) in *.
  set (a := 101 / 100 * u * (INR columns + 4) * r * NC) in *.
  replace (1.01 * ((INR columns + 4) * u) * (stretch * r) * NC) with (stretch * a) by (unfold a; lra).
  replace (1.01 * ((m + 8) * u) * NC) with (101 / 100 * (u * ((m + 5) * NC + 3 * NC))) by lra.
  lra.
Qed.
