(** Finite sums, Cauchy and Schwarz, the triangle inequality. *)
From Coq Require Import Reals List Psatz ZArith Lia.
From Machine Require Import Statements.
Import ListNotations.
Open Scope R_scope.

Lemma sum_ext {I} (l : list I) f g : (forall i, In i l -> f i = g i) -> sum l f = sum l g.
Proof.
  induction l as [|i l IH]; simpl; intros H; [reflexivity|].
  rewrite H by now left. rewrite IH; auto.
Qed.

Lemma sum_plus {I} (l : list I) f g : sum l (fun i => f i + g i) = sum l f + sum l g.
Proof. induction l; simpl; [ring|rewrite IHl; ring]. Qed.

Lemma sum_minus {I} (l : list I) f g : sum l (fun i => f i - g i) = sum l f - sum l g.
Proof. induction l; simpl; [ring|rewrite IHl; ring]. Qed.

Lemma sum_scale {I} (l : list I) c f : sum l (fun i => c * f i) = c * sum l f.
Proof. induction l; simpl; [ring|rewrite IHl; ring]. Qed.

Lemma sum_zero {I} (l : list I) f : (forall i, In i l -> f i = 0) -> sum l f = 0.
Proof.
  induction l as [|i l IH]; simpl; intros H; [reflexivity|].
  rewrite H by now left. rewrite IH; auto; ring.
Qed.

Lemma sum_le {I} (l : list I) f g : (forall i, In i l -> f i <= g i) -> sum l f <= sum l g.
Proof.
  induction l as [|i l IH]; simpl; intros H; [lra|].
  apply Rplus_le_compat; [apply H; now left|apply IH; auto].
Qed.

Lemma sum_nonneg {I} (l : list I) f : (forall i, In i l -> 0 <= f i) -> 0 <= sum l f.
Proof.
  intros H. replace 0 with (sum l (fun _ => 0)) by now apply sum_zero.
  now apply sum_le.
Qed.

Lemma sum_const {I} (l : list I) c : sum l (fun _ => c) = INR (length l) * c.
Proof.
  induction l as [|i l IH].
  - simpl. ring.
  - change (length (i :: l)) with (S (length l)). rewrite S_INR. simpl. rewrite IH. ring.
Qed.

Lemma sum_app {I} (l k : list I) f : sum (l ++ k) f = sum l f + sum k f.
Proof. induction l; simpl; [ring|rewrite IHl; ring]. Qed.

Lemma sum_map {I J} (l : list I) (g : I -> J) f : sum (map g l) f = sum l (fun i => f (g i)).
Proof. induction l; simpl; [reflexivity|now rewrite IHl]. Qed.

Lemma sum_swap {I J} (l : list I) (k : list J) f :
  sum l (fun i => sum k (fun j => f i j)) = sum k (fun j => sum l (fun i => f i j)).
Proof.
  induction l as [|i l IH]; simpl.
  - symmetry. now apply sum_zero.
  - rewrite IH. now rewrite <- sum_plus.
Qed.

Lemma sum_prod {I J} (l : list I) (k : list J) f :
  sum (list_prod l k) f = sum l (fun i => sum k (fun j => f (i, j))).
Proof.
  induction l as [|i l IH]; simpl; [reflexivity|].
  rewrite sum_app, IH, sum_map. reflexivity.
Qed.

Lemma sum_abs {I} (l : list I) f : Rabs (sum l f) <= sum l (fun i => Rabs (f i)).
Proof.
  induction l as [|i l IH]; simpl; [rewrite Rabs_R0; lra|].
  eapply Rle_trans; [apply Rabs_triang|lra].
Qed.

Lemma sum_filter {I} (l : list I) p f :
  sum (filter p l) f = sum l (fun i => if p i then f i else 0).
Proof. induction l as [|i l IH]; simpl; [reflexivity|]. destruct (p i); simpl; rewrite IH; ring. Qed.

Lemma sum_range_S n f : sum (range (S n)) f = sum (range n) f + f n.
Proof. unfold range. rewrite seq_S, sum_app. simpl. ring. Qed.

Lemma in_range n i : In i (range n) <-> (i < n)%nat.
Proof. unfold range. rewrite in_seq. lia. Qed.

Lemma length_range n : length (range n) = n.
Proof. apply seq_length. Qed.

(** A sum of which one term differs. *)
Lemma sum_single n (k : nat) f g :
  (k < n)%nat -> (forall i, (i < n)%nat -> i <> k -> f i = g i) ->
  sum (range n) f - sum (range n) g = f k - g k.
Proof.
  revert k. induction n as [|n IH]; intros k Hk H; [lia|].
  rewrite !sum_range_S. destruct (Nat.eq_dec k n) as [->|D].
  - rewrite (sum_ext (range n) f g); [ring|].
    intros i Hi. apply in_range in Hi. apply H; lia.
  - rewrite (H n) by lia.
    assert (E : sum (range n) f - sum (range n) g = f k - g k) by (apply IH; [lia|intros; apply H; lia]).
    lra.
Qed.

Lemma abs_between x y : Rabs x <= y -> - y <= x <= y.
Proof. intros H. pose proof (Rle_abs x). pose proof (Rle_abs (- x)). rewrite Rabs_Ropp in *. lra. Qed.

(** Scalar products *)

Lemma dot_sym {I} (l : list I) u v : dot l u v = dot l v u.
Proof. apply sum_ext. intros. ring. Qed.

Lemma dot_nonneg {I} (l : list I) u : 0 <= dot l u u.
Proof. apply sum_nonneg. intros. nra. Qed.

Lemma norm_nonneg {I} (l : list I) u : 0 <= norm l u.
Proof. apply sqrt_pos. Qed.

Lemma norm_square {I} (l : list I) u : norm l u * norm l u = dot l u u.
Proof. apply sqrt_sqrt, dot_nonneg. Qed.

Lemma norm_ext {I} (l : list I) u v : (forall i, In i l -> u i = v i) -> norm l u = norm l v.
Proof. intros H. unfold norm, dot. f_equal. apply sum_ext. intros i Hi. now rewrite H. Qed.

Lemma norm_le {I} (l : list I) u c : 0 <= c -> dot l u u <= c * c -> norm l u <= c.
Proof.
  intros Hc H. unfold norm. rewrite <- (sqrt_square c) by assumption. now apply sqrt_le_1_alt.
Qed.

Lemma norm_le_square {I} (l : list I) u c : norm l u <= c -> dot l u u <= c * c.
Proof.
  intros H. rewrite <- norm_square. pose proof (norm_nonneg l u). nra.
Qed.

Lemma dot_plus_square {I} (l : list I) u v :
  dot l (fun i => u i + v i) (fun i => u i + v i) = dot l u u + 2 * dot l u v + dot l v v.
Proof. unfold dot. rewrite <- sum_scale, <- !sum_plus. apply sum_ext. intros. ring. Qed.

Lemma dot_minus_square {I} (l : list I) u v :
  dot l (minus u v) (minus u v) = dot l u u - 2 * dot l u v + dot l v v.
Proof.
  unfold dot, minus. rewrite <- sum_scale, <- sum_minus, <- sum_plus. apply sum_ext. intros. ring.
Qed.

Lemma cauchy_schwarz {I} (l : list I) u v : dot l u v * dot l u v <= dot l u u * dot l v v.
Proof.
  assert (H : 0 <= sum l (fun i => sum l (fun j => (u i * v j - u j * v i) ^ 2))).
  { apply sum_nonneg. intros. apply sum_nonneg. intros. apply pow2_ge_0. }
  assert (E : sum l (fun i => sum l (fun j => (u i * v j - u j * v i) ^ 2))
              = 2 * (dot l u u * dot l v v) - 2 * (dot l u v * dot l u v)).
  { transitivity (sum l (fun i => (u i * u i) * dot l v v + (v i * v i) * dot l u u
                                  - (2 * (u i * v i)) * dot l u v)).
    - apply sum_ext. intros i _. transitivity
        (sum l (fun j => (u i * u i) * (v j * v j) + (v i * v i) * (u j * u j)
                         - (2 * (u i * v i)) * (u j * v j))).
      + apply sum_ext. intros. ring.
      + now rewrite sum_minus, sum_plus, !sum_scale.
    - transitivity
        (sum l (fun i => dot l v v * (u i * u i) + dot l u u * (v i * v i)
                         - (2 * dot l u v) * (u i * v i))).
      + apply sum_ext. intros. ring.
      + rewrite sum_minus, sum_plus, !sum_scale.
        fold (dot l u u) (dot l v v) (dot l u v). ring. }
  lra.
Qed.

Lemma dot_le_norms {I} (l : list I) u v : Rabs (dot l u v) <= norm l u * norm l v.
Proof.
  pose proof (cauchy_schwarz l u v) as H. rewrite <- !norm_square in H.
  assert (P : 0 <= norm l u * norm l v) by (apply Rmult_le_pos; apply norm_nonneg).
  rewrite <- (Rabs_pos_eq _ P). apply Rsqr_le_abs_0. unfold Rsqr. lra.
Qed.

Lemma norm_triangle {I} (l : list I) u v : norm l (fun i => u i + v i) <= norm l u + norm l v.
Proof.
  pose proof (norm_nonneg l u). pose proof (norm_nonneg l v).
  apply norm_le; [lra|]. rewrite dot_plus_square, <- !norm_square.
  pose proof (dot_le_norms l u v) as D. apply abs_between in D. nra.
Qed.

Lemma norm_scale {I} (l : list I) c u : norm l (fun i => c * u i) = Rabs c * norm l u.
Proof.
  unfold norm. rewrite <- sqrt_Rsqr_abs. rewrite <- sqrt_mult; [|apply Rle_0_sqr|apply dot_nonneg].
  f_equal. unfold dot, Rsqr. rewrite <- sum_scale. apply sum_ext. intros. ring.
Qed.

Lemma norm_minus {I} (l : list I) u v : norm l (minus u v) <= norm l u + norm l v.
Proof.
  rewrite (norm_ext l (minus u v) (fun i => u i + (-1) * v i)) by (unfold minus; intros; ring).
  eapply Rle_trans; [apply norm_triangle|]. rewrite norm_scale, Rabs_left by lra. lra.
Qed.

Lemma norm_zero {I} (l : list I) u : (forall i, In i l -> u i = 0) -> norm l u = 0.
Proof.
  intros H. unfold norm, dot. rewrite sum_zero; [apply sqrt_0|]. intros i Hi. rewrite H by assumption. ring.
Qed.

Lemma norm_sum {I J} (l : list I) (k : list J) (w : J -> R) (v : J -> I -> R) :
  norm l (fun i => sum k (fun j => w j * v j i)) <= sum k (fun j => Rabs (w j) * norm l (v j)).
Proof.
  induction k as [|j k IH]; simpl.
  - rewrite norm_zero; auto. lra.
  - eapply Rle_trans; [apply (norm_triangle l (fun i => w j * v j i))|].
    rewrite norm_scale. lra.
Qed.

(** Products of vectors, as matrices *)

Lemma dot_outer {I J} (l : list I) (k : list J) a b p q :
  dot (list_prod l k) (fun x => a (fst x) * b (snd x)) (fun x => p (fst x) * q (snd x))
  = dot l a p * dot k b q.
Proof.
  unfold dot. rewrite sum_prod. simpl.
  rewrite (sum_ext l _ (fun i => dot k b q * (a i * p i))).
  - rewrite sum_scale. unfold dot. ring.
  - intros i _. unfold dot. rewrite (Rmult_comm _ (a i * p i)), <- sum_scale.
    apply sum_ext. intros. ring.
Qed.

Lemma norm_outer {I J} (l : list I) (k : list J) a b :
  norm (list_prod l k) (fun x => a (fst x) * b (snd x)) = norm l a * norm k b.
Proof.
  unfold norm. rewrite dot_outer. apply sqrt_mult; apply dot_nonneg.
Qed.

Lemma entry_le_norm {I} (l : list I) u i : In i l -> Rabs (u i) <= norm l u.
Proof.
  intros H. rewrite <- sqrt_Rsqr_abs. apply sqrt_le_1_alt. unfold Rsqr, dot.
  induction l as [|j l IH]; [easy|]. simpl. destruct H as [->|H].
  - pose proof (dot_nonneg l u) as D. unfold dot in D. lra.
  - specialize (IH H). nra.
Qed.

(** ** Quotients of whole numbers *)

Lemma int_part_is r z : r - 1 < IZR z <= r -> z = Int_part r.
Proof.
  intros [A B]. destruct (base_Int_part r) as [C D].
  assert (L : IZR z < IZR (Int_part r + 1)) by (rewrite plus_IZR; lra).
  assert (U : IZR (Int_part r) < IZR (z + 1)) by (rewrite plus_IZR; lra).
  apply lt_IZR in L. apply lt_IZR in U. lia.
Qed.

Lemma int_part_quotient p n : (0 < n)%Z -> Int_part (IZR p / IZR n) = (p / n)%Z.
Proof.
  intros N. symmetry. apply int_part_is. assert (0 < IZR n) by now apply IZR_lt.
  pose proof (Z.mul_div_le p n N) as A. pose proof (Z.mul_succ_div_gt p n N) as B.
  apply IZR_le in A. apply IZR_lt in B. rewrite mult_IZR in A, B. rewrite succ_IZR in B.
  assert (E : IZR p / IZR n * IZR n = IZR p) by (field; lra). split; nra.
Qed.
