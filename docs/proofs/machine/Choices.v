(** Proofs of section 4: choices, counts and their composition. *)
From Coq Require Import Reals String List Psatz ZArith Lia.
From Machine Require Import Formulas Statements Vectors Columns.
Import ListNotations.
Open Scope R_scope.

Theorem pure_of_sets_proof : pure_of_sets.
Proof.
  intros D O near e M H S S' N outcomes. rewrite <- sum_scale. apply sum_le. intros o _.
  now apply (H S S' N).
Qed.

Lemma product_le a b c d x y :
  0 <= a -> 0 <= c -> 0 <= d -> 0 <= x -> a <= x * b -> c <= y * d -> 0 <= y -> 0 <= b ->
  a * c <= x * y * (b * d).
Proof.
  intros. replace (x * y * (b * d)) with ((x * b) * (y * d)) by ring.
  apply Rmult_le_compat; assumption.
Qed.

Theorem pure_composition_proof : pure_composition.
Proof.
  intros D O P near e1 e2 first second H0 H1 F G S S' N [o p]. unfold followed. cbn [fst snd].
  rewrite exp_plus. destruct (F S S' N o) as [A B]. destruct (G o S S' N p) as [A' B'].
  pose proof (exp_pos e1). pose proof (exp_pos e2).
  split; apply product_le; auto; lra.
Qed.

(** ** The exponential mechanism *)

Lemma exp_le x y : x <= y -> exp x <= exp y.
Proof. intros [H| ->]; [left; now apply exp_increasing|right; reflexivity]. Qed.

Lemma total_positive m rate cost :
  (0 < m)%nat -> 0 < sum (range m) (fun j => exp (- (rate * IZR (cost j)))).
Proof.
  intros H. destruct m as [|m]; [lia|]. rewrite sum_range_S.
  pose proof (exp_pos (- (rate * IZR (cost m)))).
  assert (0 <= sum (range m) (fun j => exp (- (rate * IZR (cost j)))))
    by (apply sum_nonneg; intros; left; apply exp_pos). lra.
Qed.

(** If the exponents of all candidates move within [low, high], a mass grows by at most
    exp(high - low). *)
Lemma chosen_ratio m rate cost cost' low high i :
  (i < m)%nat ->
  (forall j, (j < m)%nat -> low <= rate * IZR (cost' j) - rate * IZR (cost j) <= high) ->
  chosen m rate cost i <= exp (high - low) * chosen m rate cost' i.
Proof.
  intros Hi H. unfold chosen.
  set (Z0 := sum _ _). set (Z1 := sum (range m) (fun j => exp (- (rate * IZR (cost' j))))).
  assert (P0 : 0 < Z0) by (apply total_positive; lia).
  assert (P1 : 0 < Z1) by (apply total_positive; lia).
  assert (A : exp (- (rate * IZR (cost i))) <= exp high * exp (- (rate * IZR (cost' i)))).
  { rewrite <- exp_plus. apply exp_le. specialize (H i Hi). lra. }
  assert (B : Z1 <= exp (- low) * Z0).
  { unfold Z0, Z1. rewrite <- sum_scale. apply sum_le. intros j Hj. apply in_range in Hj.
    rewrite <- exp_plus. apply exp_le. specialize (H j Hj). lra. }
  replace (high - low) with (high + - low) by ring. rewrite exp_plus.
  set (a := exp (- (rate * IZR (cost i)))) in *. set (b := exp (- (rate * IZR (cost' i)))) in *.
  assert (0 < a) by apply exp_pos. assert (0 < b) by apply exp_pos.
  assert (0 < exp high) by apply exp_pos. assert (0 < exp (- low)) by apply exp_pos.
  apply Rmult_le_reg_r with (Z0 * Z1); [now apply Rmult_lt_0_compat|].
  replace (a / Z0 * (Z0 * Z1)) with (a * Z1) by (field; lra).
  replace (exp high * exp (- low) * (b / Z1) * (Z0 * Z1)) with ((exp high * b) * (exp (- low) * Z0))
    by (field; lra).
  apply Rmult_le_compat; lra.
Qed.

Lemma moved_exponent m rate cost cost' j :
  0 <= rate -> moves_by_one m cost cost' -> (j < m)%nat ->
  - rate <= rate * IZR (cost' j) - rate * IZR (cost j) <= rate.
Proof.
  intros Hr H Hj. specialize (H j Hj). destruct H as [A B].
  apply IZR_le in A. apply IZR_le in B. rewrite minus_IZR in A, B. nra.
Qed.

Theorem exponential_mechanism_proof : exponential_mechanism.
Proof.
  intros m e cost cost' He H i Hi. cbn.
  assert (X : exp e = exp (e / 2 - - (e / 2))) by (f_equal; field). rewrite X.
  apply chosen_ratio; [assumption|]. intros. apply (moved_exponent m); auto. lra.
Qed.

Theorem exponential_mechanism_range_proof : exponential_mechanism_range.
Proof.
  intros m e cost cost' He H i k Hi Hk. cbn. unfold chosen.
  set (Z0 := sum _ _). set (Z1 := sum (range m) (fun j => exp (- (e / 2 * IZR (cost' j))))).
  assert (P0 : 0 < Z0) by (apply total_positive; lia).
  assert (P1 : 0 < Z1) by (apply total_positive; lia).
  assert (E : 0 <= e / 2) by lra.
  pose proof (moved_exponent m (e / 2) cost cost' i E H Hi).
  pose proof (moved_exponent m (e / 2) cost cost' k E H Hk).
  assert (A : exp (- (e / 2 * IZR (cost i))) * exp (- (e / 2 * IZR (cost' k)))
              <= exp e * (exp (- (e / 2 * IZR (cost k))) * exp (- (e / 2 * IZR (cost' i))))).
  { rewrite <- !exp_plus. apply exp_le. lra. }
  apply Rmult_le_reg_r with (Z0 * Z1); [now apply Rmult_lt_0_compat|].
  match goal with |- ?l * _ <= ?r * _ =>
    replace (l * (Z0 * Z1)) with (exp (- (e / 2 * IZR (cost i))) * exp (- (e / 2 * IZR (cost' k)))) by (field; lra);
    replace (r * (Z0 * Z1)) with (exp e * (exp (- (e / 2 * IZR (cost k))) * exp (- (e / 2 * IZR (cost' i)))))
      by (field; lra) end.
  assumption.
Qed.

Theorem monotone_exponential_mechanism_proof : monotone_exponential_mechanism.
Proof.
  intros m e cost cost' He H i Hi.
  assert (M : forall j, (j < m)%nat -> 0 <= e * IZR (cost' j) - e * IZR (cost j) <= e).
  { intros j Hj. specialize (H j Hj). destruct H as [A B].
    apply IZR_le in A. apply IZR_le in B. rewrite minus_IZR in A, B. nra. }
  split.
  - replace e with (e - 0) at 2 by ring. now apply chosen_ratio.
  - replace e with (0 - - e) at 2 by ring. apply chosen_ratio; [assumption|].
    intros j Hj. specialize (M j Hj). lra.
Qed.

Lemma tally_sum m (cost : nat -> Z) c :
  INR (tally m cost c) = sum (range m) (fun i => if Z.eqb (cost i) c then 1 else 0).
Proof.
  unfold tally. transitivity (sum (filter (fun i => Z.eqb (cost i) c) (range m)) (fun _ => 1)).
  - rewrite sum_const. ring.
  - apply sum_filter.
Qed.

Lemma sum_at (costs : list Z) c x : NoDup costs -> In c costs ->
  sum costs (fun d => (if Z.eqb c d then 1 else 0) * x d) = x c.
Proof.
  induction costs as [|d l IH]; [easy|]. intros ND Hin. inversion ND; subst. simpl.
  destruct (Z.eqb_spec c d) as [->|N].
  - rewrite sum_zero; [ring|]. intros e He. destruct (Z.eqb_spec d e); [subst; contradiction|ring].
  - destruct Hin as [->|Hin]; [easy|]. rewrite IH; auto. ring.
Qed.

Theorem tallied_choice_proof : tallied_choice.
Proof.
  intros m rate cost costs ND Hin i Hi. unfold chosen.
  assert (E : sum costs (fun c => INR (tally m cost c) * exp (- (rate * IZR c)))
              = sum (range m) (fun j => exp (- (rate * IZR (cost j))))).
  { transitivity (sum costs (fun c => sum (range m) (fun j =>
      (if Z.eqb (cost j) c then 1 else 0) * exp (- (rate * IZR c))))).
    - apply sum_ext. intros c _. rewrite tally_sum, Rmult_comm, <- sum_scale.
      apply sum_ext. intros. ring.
    - rewrite sum_swap. apply sum_ext. intros j Hj. apply in_range in Hj.
      now apply (sum_at costs (cost j) (fun c => exp (- (rate * IZR c)))); auto. }
  rewrite E. assert (T : 0 < INR (tally m cost (cost i))).
  { apply lt_0_INR. unfold tally.
    assert (In i (filter (fun j => Z.eqb (cost j) (cost i)) (range m))).
    { apply filter_In. split; [now apply in_range|apply Z.eqb_refl]. }
    destruct (filter _ _); [easy|simpl; lia]. }
  assert (0 < sum (range m) (fun j => exp (- (rate * IZR (cost j))))) by (apply total_positive; lia).
  field. lra.
Qed.

Theorem errors_move_by_one_proof : errors_move_by_one.
Proof.
  intros record n weight wrong S S' W [k [Hk Same]].
  set (t := fun (T : nat -> record) i => if wrong i (T i) then weight (T i) else 0%Z).
  assert (D : forall m, (m <= n)%nat ->
    (-65536 <= whole_sum m (t S') - whole_sum m (t S) <= 65536)%Z
    /\ ((m <= k)%nat -> whole_sum m (t S') = whole_sum m (t S))).
  { induction m as [|m IH]; intros Hm; [cbn; lia|]. rewrite !whole_sum_S.
    destruct (IH ltac:(lia)) as [A B]. destruct (Nat.eq_dec m k) as [->|N].
    - rewrite (B ltac:(lia)). pose proof (W (S k)). pose proof (W (S' k)). unfold t.
      destruct (wrong k (S k)), (wrong k (S' k)); lia.
    - assert (t S' m = t S m) as -> by (unfold t; now rewrite (Same m ltac:(lia) N)).
      split; [lia|]. intros. rewrite B; lia. }
  destruct (D n ltac:(lia)) as [A _].
  assert (E : forall T, weighted_errors n weight wrong T = (whole_sum n (t T) / 65536)%Z) by reflexivity.
  rewrite !E.
  assert (U : (whole_sum n (t S') / 65536 <= (whole_sum n (t S) + 1 * 65536) / 65536)%Z)
    by (apply Z.div_le_mono; lia).
  assert (L : (whole_sum n (t S) / 65536 <= (whole_sum n (t S') + 1 * 65536) / 65536)%Z)
    by (apply Z.div_le_mono; lia).
  rewrite Z.div_add in U by lia. rewrite Z.div_add in L by lia.
  set (x := (whole_sum n (t S) / 65536)%Z) in *. set (y := (whole_sum n (t S') / 65536)%Z) in *.
  apply IZR_le in U. apply IZR_le in L. rewrite plus_IZR in U, L. cbn. apply Rabs_le. lra.
Qed.

(** ** Two choices at once, and errors in groups *)

Lemma sum_shifted k a f : sum (seq a k) f = sum (range k) (fun j => f (a + j)%nat).
Proof.
  unfold range. induction k as [|k IH]; [reflexivity|].
  rewrite !seq_S, !sum_app, IH. simpl. reflexivity.
Qed.

Lemma sum_pairs m k f : (0 < k)%nat ->
  sum (range (m * k)) (fun p => f (p / k)%nat (p mod k)%nat)
  = sum (range m) (fun i => sum (range k) (fun j => f i j)).
Proof.
  intros Hk. induction m as [|m IH]; [reflexivity|].
  rewrite sum_range_S, <- IH. replace (S m * k)%nat with (m * k + k)%nat by lia.
  unfold range at 1. rewrite seq_app, sum_app. f_equal.
  rewrite Nat.add_0_l, sum_shifted. apply sum_ext. intros j Hj. apply in_range in Hj.
  rewrite Nat.div_add_l, (Nat.div_small j k), Nat.add_0_r by lia.
  rewrite Nat.add_comm, Nat.mod_add, Nat.mod_small by lia. reflexivity.
Qed.

Theorem two_choices_proof : two_choices.
Proof.
  intros m k e cost other i j Hi Hj. cbn. unfold chosen.
  set (rate := e / 2).
  rewrite Nat.div_add_l, (Nat.div_small j k), Nat.add_0_r by lia.
  assert (M : ((i * k + j) mod k = j)%nat)
    by (rewrite Nat.add_comm, Nat.mod_add, Nat.mod_small; lia).
  rewrite M.
  assert (E : sum (range (m * k))
      (fun p => exp (- (rate * IZR (cost (p / k)%nat + other (p mod k)%nat))))
    = sum (range m) (fun a => exp (- (rate * IZR (cost a))))
      * sum (range k) (fun b => exp (- (rate * IZR (other b))))).
  { rewrite (sum_pairs m k (fun a b => exp (- (rate * IZR (cost a + other b))))) by lia.
    rewrite Rmult_comm, <- sum_scale. apply sum_ext. intros a _.
    rewrite Rmult_comm, <- sum_scale. apply sum_ext. intros b _.
    rewrite <- exp_plus, plus_IZR. f_equal. ring. }
  rewrite E.
  assert (0 < sum (range m) (fun a => exp (- (rate * IZR (cost a))))) by (apply total_positive; lia).
  assert (0 < sum (range k) (fun b => exp (- (rate * IZR (other b))))) by (apply total_positive; lia).
  replace (exp (- (rate * IZR (cost i + other j))))
    with (exp (- (rate * IZR (cost i))) * exp (- (rate * IZR (other j))))
    by (rewrite <- exp_plus, plus_IZR; f_equal; ring).
  field. lra.
Qed.

Lemma whole_sum_but_one n s k : (k < n)%nat ->
  whole_sum n s = (whole_sum n (fun i => if Nat.eqb i k then 0 else s i) + s k)%Z.
Proof.
  assert (A : forall m, (m <= k)%nat ->
    whole_sum m s = whole_sum m (fun i => if Nat.eqb i k then 0 else s i)%Z).
  { induction m as [|m IH]; intros Hm; [reflexivity|]. rewrite !whole_sum_S, IH by lia.
    destruct (Nat.eqb_spec m k); lia. }
  induction n as [|n IH]; intros Hk; [lia|]. rewrite !whole_sum_S.
  destruct (Nat.eqb_spec n k) as [->|N].
  - rewrite A by lia. lia.
  - rewrite IH by lia. lia.
Qed.

Lemma one_group groups a : 0 <= sum (range groups) (fun g => if Nat.eqb a g then 1 else 0) <= 1.
Proof.
  assert (H : forall m, (m <= a)%nat -> sum (range m) (fun g => if Nat.eqb a g then 1 else 0) = 0).
  { intros m Hm. apply sum_zero. intros g Hg. apply in_range in Hg.
    destruct (Nat.eqb_spec a g); [lia|reflexivity]. }
  induction groups as [|m IH]; [simpl; lra|]. rewrite sum_range_S.
  destruct (Nat.eqb_spec a m) as [->|N]; [rewrite H by lia|]; lra.
Qed.

Theorem grouped_errors_move_by_one_proof : grouped_errors_move_by_one.
Proof.
  intros record n groups errors group S S' W [k [Hk Same]]. cbn.
  set (t := fun (T : nat -> record) g i => if Nat.eqb (group i (T i)) g then errors i (T i) else 0%Z).
  set (rest := fun g => whole_sum n (fun i => if Nat.eqb i k then 0%Z else t S g i)).
  assert (E : forall T, (forall i, (i < n)%nat -> i <> k -> S i = T i) ->
    forall g, errors_of_group n errors group T g = ((rest g + t T g k) / 65536)%Z).
  { intros T HT g. change (errors_of_group n errors group T g) with (whole_sum n (t T g) / 65536)%Z.
    rewrite (whole_sum_but_one n (t T g) k Hk). unfold rest. do 2 f_equal. unfold whole_sum.
    f_equal. apply map_ext_in. intros i Hi. apply in_range in Hi.
    destruct (Nat.eqb_spec i k); [reflexivity|]. unfold t. now rewrite (HT i Hi). }
  assert (B : forall T, (forall i, (i < n)%nat -> i <> k -> S i = T i) ->
    0 <= sum (range groups) (fun g => IZR (errors_of_group n errors group T g))
         - sum (range groups) (fun g => IZR (rest g / 65536)) <= 1).
  { intros T HT. rewrite <- sum_minus.
    assert (D : forall g, 0 <= IZR (errors_of_group n errors group T g) - IZR (rest g / 65536)
                          <= (if Nat.eqb (group k (T k)) g then 1 else 0)).
    { intros g. rewrite (E T HT g), <- minus_IZR. unfold t.
      destruct (Nat.eqb (group k (T k)) g).
      - pose proof (W k (T k)).
        assert (L : (rest g / 65536 <= (rest g + errors k (T k)) / 65536)%Z)
          by (apply Z.div_le_mono; lia).
        assert (U : ((rest g + errors k (T k)) / 65536 <= (rest g + 1 * 65536) / 65536)%Z)
          by (apply Z.div_le_mono; lia).
        rewrite Z.div_add in U by lia. split; apply IZR_le; lia.
      - rewrite Z.add_0_r, Z.sub_diag. lra. }
    split.
    - apply sum_nonneg. intros g _. apply D.
    - eapply Rle_trans; [apply sum_le; intros g _; apply D|]. apply one_group. }
  pose proof (B S (fun _ _ _ => eq_refl)). pose proof (B S' Same). apply Rabs_le. lra.
Qed.

(** ** Laplace noise *)

Lemma laplace_factor rate : 0 < rate -> 0 < (1 - exp (- rate)) / (1 + exp (- rate)).
Proof.
  intros H. assert (exp (- rate) < 1) by (rewrite <- exp_0; apply exp_increasing; lra).
  pose proof (exp_pos (- rate)). apply Rdiv_lt_0_compat; lra.
Qed.

Lemma laplace_one_way {I} (places : list I) rate (x x' found : I -> Z) d :
  0 < rate -> sum places (fun i => Rabs (IZR (x i) - IZR (x' i))) <= d ->
  with_laplace places rate x found <= exp (rate * d) * with_laplace places rate x' found.
Proof.
  intros Hr H. unfold with_laplace.
  set (c := ((1 - exp (- rate)) / (1 + exp (- rate))) ^ length places).
  assert (0 < c) by (apply pow_lt; now apply laplace_factor).
  replace (exp (rate * d) * (c * exp (- (rate * sum places (fun i => Rabs (IZR (found i) - IZR (x' i)))))))
    with (c * (exp (rate * d) * exp (- (rate * sum places (fun i => Rabs (IZR (found i) - IZR (x' i)))))))
    by ring.
  apply Rmult_le_compat_l; [lra|]. rewrite <- exp_plus. apply exp_le.
  assert (sum places (fun i => Rabs (IZR (found i) - IZR (x' i)))
          <= sum places (fun i => Rabs (IZR (found i) - IZR (x i)))
             + sum places (fun i => Rabs (IZR (x i) - IZR (x' i)))).
  { rewrite <- sum_plus. apply sum_le. intros i _.
    replace (IZR (found i) - IZR (x' i)) with ((IZR (found i) - IZR (x i)) + (IZR (x i) - IZR (x' i))) by ring.
    apply Rabs_triang. }
  nra.
Qed.

Theorem laplace_counts_proof : laplace_counts.
Proof.
  intros D I near places s e exact Hs He H. cbn. intros S S' N found.
  assert (R : 0 < e / s) by now apply Rdiv_lt_0_compat.
  assert (X : exp e = exp (e / s * s)) by (f_equal; field; lra).
  rewrite X. split; apply laplace_one_way; auto.
  rewrite (sum_ext _ _ (fun i => Rabs (IZR (exact S i) - IZR (exact S' i))));
    [auto|intros; apply Rabs_minus_sym].
Qed.

Lemma norm_minus_sym {I} (l : list I) u v : norm l (minus u v) = norm l (minus v u).
Proof. unfold norm, dot, minus. f_equal. apply sum_ext. intros. ring. Qed.

Lemma density_one_way {I} (places : list I) s e (x x' found : I -> R) :
  0 < s -> 0 < e -> norm places (minus x x') <= s ->
  exp (- (norm places (minus found x) / (s / e)))
  <= exp e * exp (- (norm places (minus found x') / (s / e))).
Proof.
  intros Hs He H. rewrite <- exp_plus. apply exp_le.
  assert (T : norm places (minus found x') <= norm places (minus found x) + norm places (minus x x')).
  { rewrite (norm_ext places (minus found x') (fun i => minus found x i + minus x x' i))
      by (unfold minus; intros; ring). apply norm_triangle. }
  set (a := norm places (minus found x)) in *. set (b := norm places (minus found x')) in *.
  assert (R : 0 < e / s) by now apply Rdiv_lt_0_compat.
  replace (a / (s / e)) with (a * (e / s)) by (field; lra).
  replace (b / (s / e)) with (b * (e / s)) by (field; lra).
  replace e with (s * (e / s)) at 2 by (field; lra).
  nra.
Qed.

Theorem l2_laplace_density_proof : l2_laplace_density.
Proof.
  intros D I near places s e exact Hs He H. cbn. intros S S' N found.
  split; apply density_one_way; auto. rewrite norm_minus_sym. auto.
Qed.

Theorem count_before_a_choice_proof : count_before_a_choice.
Proof.
  intros D O near e0 e1 count rare one other He Hc P1 P2 Q1 Q2.
  apply pure_composition_proof.
  - intros. unfold with_laplace. apply Rmult_le_pos; [|left; apply exp_pos].
    apply pow_le. left. now apply laplace_factor.
  - intros k S o. destruct (rare k); auto.
  - pose proof (laplace_counts_proof D Datatypes.unit near [tt] 1 e0 (fun S _ => count S)) as L.
    cbn in L. replace (e0 / 1) with e0 in L by field.
    assert (B : pure near e0 (fun S found => with_laplace [tt] e0 (fun _ => count S) found)).
    { apply L; try lra. intros S S' N. specialize (Hc S S' N). cbn in Hc. cbn. lra. }
    intros S S' N k. apply (B S S' N (fun _ => k)).
  - intros k. destruct (rare k); auto.
Qed.

(** ** A choice with a count *)

Theorem counted_choice_proof : counted_choice.
Proof.
  intros m up down cost cost' [Hd Hu] H i k Hi. cbn.
  set (rate := (up - down) / 2).
  assert (R0 : 0 <= rate) by (unfold rate; lra).
  unfold chosen.
  set (Z0 := sum _ _). set (Z1 := sum (range m) (fun j => exp (- (rate * IZR (cost' j))))).
  assert (P0 : 0 < Z0) by (apply total_positive; lia).
  assert (P1 : 0 < Z1) by (apply total_positive; lia).
  assert (B : Z1 <= exp rate * Z0).
  { unfold Z0, Z1. rewrite <- sum_scale. apply sum_le. intros j Hj. apply in_range in Hj.
    rewrite <- exp_plus. apply exp_le. pose proof (moved_exponent m rate cost cost' j R0 H Hj). lra. }
  unfold counted_noise.
  set (c := (1 - exp (- up)) * (1 - exp (- down)) / (1 - exp (- (up + down)))).
  assert (C : 0 < c).
  { assert (exp (- up) < 1) by (rewrite <- exp_0; apply exp_increasing; lra).
    assert (exp (- down) < 1) by (rewrite <- exp_0; apply exp_increasing; lra).
    assert (exp (- (up + down)) < 1) by (rewrite <- exp_0; apply exp_increasing; lra).
    apply Rdiv_lt_0_compat; [apply Rmult_lt_0_compat|]; lra. }
  set (g := fun j => if Z.leb 0 j then exp (- (up * IZR j)) else exp (down * IZR j)).
  (* The exponents of one candidate. *)
  assert (A : exp (- (rate * IZR (cost i))) * g (k - cost i)%Z
              <= exp (up - rate) * (exp (- (rate * IZR (cost' i))) * g (k - cost' i)%Z)).
  { specialize (H i Hi).
    set (f := fun j => if Z.leb 0 j then - (up * IZR j) else down * IZR j).
    assert (G : forall j, g j = exp (f j)) by (intros j; unfold g, f; now destruct (Z.leb 0 j)).
    rewrite !G, <- !exp_plus. apply exp_le. unfold f.
    assert (U : up - rate = rate + down) by (unfold rate; field).
    assert (St : forall j, - up <= f j - f (j - 1)%Z <= down).
    { intros j. unfold f. destruct (Z.leb_spec 0 j), (Z.leb_spec 0 (j - 1)); try lia.
      - rewrite minus_IZR. lra.
      - assert (j = 0)%Z as -> by lia. simpl. lra.
      - rewrite minus_IZR. lra. }
    fold (f (k - cost i)%Z). fold (f (k - cost' i)%Z).
    assert (E : (cost' i = cost i \/ cost' i = cost i + 1 \/ cost' i = cost i - 1)%Z) by lia.
    destruct E as [E|[E|E]]; rewrite E.
    - lra.
    - pose proof (St (k - cost i)%Z).
      replace (k - (cost i + 1))%Z with (k - cost i - 1)%Z by lia. rewrite plus_IZR. lra.
    - pose proof (St (k - (cost i - 1))%Z).
      replace (k - cost i)%Z with (k - (cost i - 1) - 1)%Z by lia. rewrite minus_IZR. lra. }
  fold (g (k - cost i)%Z). fold (g (k - cost' i)%Z).
  set (a := exp (- (rate * IZR (cost i)))) in *. set (b := exp (- (rate * IZR (cost' i)))) in *.
  assert (Gp : forall j, 0 < g j) by (intros j; unfold g; destruct (Z.leb 0 j); apply exp_pos).
  pose proof (Gp (k - cost i)%Z). pose proof (Gp (k - cost' i)%Z).
  assert (0 < a) by apply exp_pos. assert (0 < b) by apply exp_pos.
  assert (X : exp up = exp (up - rate) * exp rate) by (rewrite <- exp_plus; f_equal; ring).
  rewrite X. pose proof (exp_pos (up - rate)). pose proof (exp_pos rate).
  apply Rmult_le_reg_r with (Z0 * Z1 / c); [apply Rdiv_lt_0_compat; [now apply Rmult_lt_0_compat|assumption]|].
  match goal with |- ?l * _ <= ?r * _ =>
    replace (l * (Z0 * Z1 / c)) with ((a * g (k - cost i)%Z) * Z1) by (field; lra);
    replace (r * (Z0 * Z1 / c)) with ((exp (up - rate) * (b * g (k - cost' i)%Z)) * (exp rate * Z0))
      by (field; lra) end.
  apply Rmult_le_compat; [apply Rmult_le_pos; lra|lra|assumption|assumption].
Qed.

(** ** A column that ranks a rare class *)

(** Of two ends of a top one leaves no record a larger place than the other. *)
Lemma places_are_ordered e e' part part' :
  0 <= part <= 1 -> 0 <= part' <= 1 ->
  (forall s, place_at_top e part s <= place_at_top e' part' s)
  \/ (forall s, place_at_top e' part' s <= place_at_top e part s).
Proof.
  intros P P'. unfold place_at_top.
  destruct (Z.lt_trichotomy e e') as [L|[->|L]].
  - right. intros s. destruct (Z.ltb_spec e s), (Z.ltb_spec e' s), (Z.eqb_spec s e), (Z.eqb_spec s e'); lia || lra.
  - destruct (Rle_dec part part'); [left|right]; intros s;
      destruct (Z.ltb_spec e' s), (Z.eqb_spec s e'); lia || lra.
  - left. intros s. destruct (Z.ltb_spec e s), (Z.ltb_spec e' s), (Z.eqb_spec s e), (Z.eqb_spec s e'); lia || lra.
Qed.

Lemma place_between e part s : 0 <= part <= 1 -> 0 <= place_at_top e part s <= 1.
Proof. intros P. unfold place_at_top. destruct (Z.ltb e s), (Z.eqb s e); lra. Qed.

(** If the other places are at most as large as before, by d in all, the replaced record has d more. *)
Lemma missed_one_way n places score score' rare rare' e e' part part' k :
  is_top n places score e part -> is_top n places score' e' part' -> (k < n)%nat ->
  (forall i, (i < n)%nat -> i <> k -> score i = score' i /\ rare i = rare' i) ->
  (forall s, place_at_top e' part' s <= place_at_top e part s) ->
  Rabs (missed n score' rare' e' part' - missed n score rare e part) <= 1.
Proof.
  intros [P T] [P' T'] Hk Same Le.
  set (t := fun i => place_at_top e part (score i)) in *.
  set (t' := fun i => place_at_top e' part' (score' i)) in *.
  (* The sum over the others, as a sum in which the replaced record counts nothing. *)
  set (others := fun f : nat -> R => sum (range n) (fun i => if Nat.eqb i k then 0 else f i)).
  assert (Split : forall f, sum (range n) f = others f + f k).
  { intros f. pose proof (sum_single n k f (fun i => if Nat.eqb i k then 0 else f i) Hk) as E.
    cbv beta in E. rewrite Nat.eqb_refl in E. unfold others.
    assert (sum (range n) f - sum (range n) (fun i => if Nat.eqb i k then 0 else f i) = f k - 0).
    { apply E. intros i _ D. apply Nat.eqb_neq in D. now rewrite D. } lra. }
  set (gone := others (fun i => t i - t' i)).
  set (rare_gone := others (fun i => if rare i then t i - t' i else 0)).
  assert (Pos : forall i, (i < n)%nat -> i <> k -> 0 <= t i - t' i).
  { intros i Hi D. destruct (Same i Hi D) as [E _]. unfold t, t'. rewrite E. specialize (Le (score' i)). lra. }
  assert (G : 0 <= rare_gone <= gone).
  { unfold rare_gone, gone, others. split.
    - apply sum_nonneg. intros i Hi. apply in_range in Hi. destruct (Nat.eqb_spec i k) as [Ek|D]; [lra|].
      destruct (rare i); [now apply Pos|lra].
    - apply sum_le. intros i Hi. apply in_range in Hi. destruct (Nat.eqb_spec i k) as [Ek|D]; [lra|].
      specialize (Pos i Hi D). destruct (rare i); lra. }
  assert (Bal : gone = t' k - t k).
  { assert (T1 : sum (range n) (fun i => t i) = places) by exact T.
    assert (T2 : sum (range n) (fun i => t' i) = places) by exact T'.
    assert (E : sum (range n) (fun i => t i - t' i) = 0) by (rewrite sum_minus; lra).
    rewrite Split in E. fold gone in E. cbv beta in E. lra. }
  assert (M : missed n score' rare' e' part' - missed n score rare e part
    = rare_gone + ((if rare' k then 1 - t' k else 0) - (if rare k then 1 - t k else 0))).
  { unfold missed. rewrite <- sum_minus, Split. f_equal. unfold rare_gone, others. apply sum_ext.
    intros i Hi. apply in_range in Hi. destruct (Nat.eqb_spec i k) as [Ek|D]; [reflexivity|].
    destruct (Same i Hi D) as [E R]. rewrite <- R. unfold t, t'. rewrite E. destruct (rare i); ring. }
  rewrite M.
  pose proof (place_between e part (score k) P) as A. pose proof (place_between e' part' (score' k) P') as A'.
  fold (t k) in A. fold (t' k) in A'. apply Rabs_le. destruct (rare k), (rare' k); lra.
Qed.

Lemma floors_move_by_one x y :
  Rabs (x - y) <= 1 -> Rabs (IZR (Int_part x) - IZR (Int_part y)) <= 1.
Proof.
  intros H. apply abs_between in H. destruct (base_Int_part x), (base_Int_part y).
  assert (A : IZR (Int_part x) < IZR (Int_part y + 2)) by (rewrite plus_IZR; lra).
  assert (B : IZR (Int_part y) < IZR (Int_part x + 2)) by (rewrite plus_IZR; lra).
  apply lt_IZR in A. apply lt_IZR in B.
  assert (C : (Int_part x <= Int_part y + 1)%Z) by lia. assert (D : (Int_part y <= Int_part x + 1)%Z) by lia.
  apply IZR_le in C. apply IZR_le in D. rewrite plus_IZR in C, D. apply Rabs_le. lra.
Qed.

Theorem missed_moves_by_one_proof : missed_moves_by_one.
Proof.
  intros n places s s' r r' e e' part part' T T' [k [Hk Same]]. cbn. apply floors_move_by_one.
  destruct (places_are_ordered e e' part part' (proj1 T) (proj1 T')) as [L|L].
  - apply (missed_one_way n places s' s r' r e' e part' part k); auto.
    intros i Hi D. destruct (Same i Hi D). now split.
  - rewrite Rabs_minus_sym. now apply (missed_one_way n places s s' r r' e e' part part' k).
Qed.

Theorem missed_written_out_proof : missed_written_out.
Proof.
  intros n score rare e left at_end H. cbn. do 2 f_equal. unfold missed.
  replace (sum (range n) (fun i => if andb (rare i) (Z.eqb (score i) e) then 1 else 0) * left / at_end)
    with (left / at_end * sum (range n) (fun i => if andb (rare i) (Z.eqb (score i) e) then 1 else 0))
    by (field; assumption).
  rewrite <- sum_scale, <- sum_minus. apply sum_ext. intros i _. unfold place_at_top.
  destruct (rare i); cbn; [|ring].
  destruct (Z.ltb_spec e (score i)), (Z.eqb_spec (score i) e); cbn; try lia; ring.
Qed.
