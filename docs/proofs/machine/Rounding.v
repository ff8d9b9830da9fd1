(** Proofs of section 5: rounding. *)
From Coq Require Import Reals String List Psatz ZArith Lia Permutation.
From Machine Require Import Formulas Statements Vectors Sums.
Import ListNotations.
Open Scope R_scope.

(** ** Powers of 1 + u *)

Lemma power_at_least_one u k : 0 <= u -> 1 <= (1 + u) ^ k.
Proof. intros H. apply pow_R1_Rle. lra. Qed.

Lemma power_le u j k : 0 <= u -> (j <= k)%nat -> (1 + u) ^ j <= (1 + u) ^ k.
Proof. intros H L. apply Rle_pow; [lra|assumption]. Qed.

(** Bernoulli: (1 + u)^k (1 - k u) <= 1. *)
Lemma power_bernoulli u k : 0 <= u -> (1 + u) ^ k * (1 - INR k * u) <= 1.
Proof.
  intros H. induction k as [|k IH]; [simpl; lra|].
  rewrite S_INR. simpl. pose proof (power_at_least_one u k H). pose proof (pos_INR k).
  assert (0 <= INR k * (u * u)) by (apply Rmult_le_pos; nra).
  assert ((1 + u) * (1 - (INR k + 1) * u) <= 1 - INR k * u) by nra.
  nra.
Qed.

(** To first order, with half a percent for all higher orders. *)
Lemma growth_first_order u k :
  0 <= u -> (4 <= k)%nat -> INR k * u <= / 900 -> growth u k <= 1.004 * (INR k * u).
Proof.
  intros H K S. unfold growth.
  pose proof (power_bernoulli u k H) as B. pose proof (power_at_least_one u k H) as P.
  assert (K4 : 4 <= INR k) by (replace 4 with (INR 4) by (simpl; ring); now apply le_INR).
  set (s := INR k * u) in *. assert (U : 4 * u <= s) by (unfold s; nra).
  set (p := (1 + u) ^ k) in *.
  assert (Q : p <= 1 + 1.0012 * s) by nra.
  nra.
Qed.

Lemma growth_nonneg u k : 0 <= u -> 0 <= growth u k.
Proof. intros H. unfold growth. pose proof (power_at_least_one u k H). nra. Qed.

(** ** Numbers near a sum *)

(** [a] is near [X], whose terms have the absolute sum [A]. *)
Definition near (F a X A : R) : Prop := Rabs (a - X) <= (F - 1) * A /\ Rabs X <= A.

Lemma near_size F a X A : near F a X A -> Rabs a <= F * A.
Proof.
  intros [H K]. pose proof (Rabs_triang (a - X) X). replace (a - X + X) with a in * by ring. lra.
Qed.

Lemma near_weaken F G a X A : F <= G -> near F a X A -> near G a X A.
Proof. intros L [H K]. split; [|assumption]. pose proof (Rabs_pos X). nra. Qed.

Lemma near_add u F a X A b Y B d :
  0 <= u -> 1 <= F -> near F a X A -> near F b Y B -> Rabs d <= u ->
  near (F * (1 + u)) ((a + b) * (1 + d)) (X + Y) (A + B).
Proof.
  intros Hu HF Ha Hb Hd.
  pose proof (near_size _ _ _ _ Ha) as Sa. pose proof (near_size _ _ _ _ Hb) as Sb.
  destruct Ha as [Ha HA]. destruct Hb as [Hb HB]. split.
  - replace ((a + b) * (1 + d) - (X + Y)) with ((a - X) + (b - Y) + (a + b) * d) by ring.
    assert (Rabs ((a + b) * d) <= (F * A + F * B) * u).
    { rewrite Rabs_mult. pose proof (Rabs_triang a b). apply Rmult_le_compat; auto using Rabs_pos; lra. }
    pose proof (Rabs_triang (a - X + (b - Y)) ((a + b) * d)). pose proof (Rabs_triang (a - X) (b - Y)).
    lra.
  - pose proof (Rabs_triang X Y). lra.
Qed.

(** ** Blocks, in any order *)

Definition absolute_sum {T} (x : T -> R) (its : list T) : R := sum its (fun i => Rabs (x i)).

Lemma absolute_sum_nonneg {T} (x : T -> R) its : 0 <= absolute_sum x its.
Proof. apply sum_nonneg. intros. apply Rabs_pos. Qed.

Lemma near_tree {T} u F (x y : T -> R) o a :
  0 <= u -> 1 <= F -> (forall i, Rabs (y i - x i) <= (F - 1) * Rabs (x i)) ->
  summed u y o a -> near (F * (1 + u) ^ depth o) a (sum (terms o) x) (absolute_sum x (terms o)).
Proof.
  intros Hu HF H S. induction S as [i|l r a b d Sl IHl Sr IHr Hd]; simpl.
  - split; unfold absolute_sum; simpl.
    + rewrite Rmult_1_r, !Rplus_0_r. apply H.
    + rewrite !Rplus_0_r. lra.
  - unfold absolute_sum. rewrite !sum_app.
    set (m := Nat.max (depth l) (depth r)).
    replace (F * ((1 + u) * (1 + u) ^ m)) with (F * (1 + u) ^ m * (1 + u)) by ring.
    pose proof (power_at_least_one u m Hu).
    assert (near (F * (1 + u) ^ m) a (sum (terms l) x) (absolute_sum x (terms l))).
    { eapply near_weaken; [|exact IHl]. apply Rmult_le_compat_l; [lra|]. apply power_le; [assumption|]. unfold m; lia. }
    assert (near (F * (1 + u) ^ m) b (sum (terms r) x) (absolute_sum x (terms r))).
    { eapply near_weaken; [|exact IHr]. apply Rmult_le_compat_l; [lra|]. apply power_le; [assumption|]. unfold m; lia. }
    apply near_add; auto. nra.
Qed.

(** ** Numbers one after the other *)

(** Parts of a list of terms, each with a number near its sum. *)
Definition near_parts {T} (F : R) (x : T -> R) (parts : list (list T)) (values : list R) : Prop :=
  Forall2 (fun its a => near F a (sum its x) (absolute_sum x its)) parts values.

Lemma near_added {T} u F (x : T -> R) parts values total :
  0 <= u -> 1 <= F -> near_parts F x parts values -> added u values total ->
  near (F * (1 + u) ^ (length parts - 1)) total (sum (concat parts) x) (absolute_sum x (concat parts)).
Proof.
  intros Hu HF N A. revert parts N. induction A as [a|a rest total d A IH Hd]; intros parts N.
  - inversion N as [|its ? rest' ? Na N']; subst. inversion N'; subst. simpl.
    rewrite app_nil_r, Rmult_1_r. assumption.
  - inversion N as [|its ? rest' ? Na N']; subst. specialize (IH _ N').
    assert (L : (1 <= length rest')%nat).
    { destruct rest'; simpl; [|lia]. inversion N'; subst. inversion A. }
    simpl. unfold absolute_sum. rewrite !sum_app. rewrite (Nat.sub_0_r (length rest')).
    replace (length rest') with (S (length rest' - 1)) by lia. simpl (_ ^ S _).
    set (m := (length rest' - 1)%nat) in *. pose proof (power_at_least_one u m Hu).
    replace (F * ((1 + u) * (1 + u) ^ m)) with (F * (1 + u) ^ m * (1 + u)) by ring.
    rewrite (Rplus_comm (sum its x)), (Rplus_comm (sum its _)).
    apply near_add; auto; [nra|]. eapply near_weaken; [|exact Na]. nra.
Qed.

(** ** The rule of Kahan *)

Lemma abs_product a b p q : Rabs a <= p -> Rabs b <= q -> Rabs (a * b) <= p * q.
Proof. intros. rewrite Rabs_mult. apply Rmult_le_compat; auto using Rabs_pos. Qed.

Lemma abs_sum a b p q : Rabs a <= p -> Rabs b <= q -> Rabs (a + b) <= p + q.
Proof. intros. pose proof (Rabs_triang a b). lra. Qed.

Lemma abs_one_plus d u : Rabs d <= u -> Rabs (1 + d) <= 1 + u.
Proof. intros. apply abs_sum; [rewrite Rabs_R1; lra|assumption]. Qed.

(** One step: k numbers of the absolute sum A came before the number x. *)
Lemma compensated_step u k A X S x t c d1 d2 d3 d4 :
  0 <= u <= / 1000 -> 0 <= k -> k * u <= / 8192 -> 0 <= A ->
  Rabs S <= A -> Rabs x <= X ->
  Rabs (t + c - S) <= (2 * u + 12 * k * u ^ 2) * A -> Rabs c <= 2.1 * u * A ->
  Rabs d1 <= u -> Rabs d2 <= u -> Rabs d3 <= u -> Rabs d4 <= u ->
  let y := (c + x) * (1 + d1) in
  let t' := (t + y) * (1 + d2) in
  let c' := (y - (t' - t) * (1 + d3)) * (1 + d4) in
  Rabs (t' + c' - (S + x)) <= (2 * u + 12 * (k + 1) * u ^ 2) * (A + X)
  /\ Rabs c' <= 2.1 * u * (A + X)
  /\ Rabs (t' - (S + x)) <= (3 * u + 12 * (k + 1) * u ^ 2) * (A + X).
Proof.
  intros [Hu Hu'] Hk Hku HA HS Hx He Hc H1 H2 H3 H4 y t' c'.
  assert (HX : 0 <= X) by (pose proof (Rabs_pos x); lra).
  (* Products of the small numbers, as numbers of their own. *)
  assert (UA : 0 <= u * A) by nra. assert (UX : 0 <= u * X) by nra.
  assert (U2A : 0 <= u ^ 2 * A <= u * A / 1000) by (split; nra).
  assert (U2X : 0 <= u ^ 2 * X <= u * X / 1000) by (split; nra).
  assert (U3A : u ^ 3 * A <= u ^ 2 * A / 1000) by nra.
  assert (U3X : u ^ 3 * X <= u ^ 2 * X / 1000) by nra.
  assert (U4A : 0 <= u ^ 4 * A <= u ^ 2 * A / 1000000).
  { assert (u ^ 2 <= / 1000000) by nra. split; [nra|]. replace (u ^ 4 * A) with (u ^ 2 * (u ^ 2 * A)) by ring. nra. }
  assert (U3A0 : 0 <= u ^ 3 * A) by (replace (u ^ 3 * A) with (u * (u ^ 2 * A)) by ring; nra).
  assert (U3X0 : 0 <= u ^ 3 * X) by (replace (u ^ 3 * X) with (u * (u ^ 2 * X)) by ring; nra).
  assert (U4X : 0 <= u ^ 4 * X <= u ^ 2 * X / 1000000).
  { assert (u ^ 2 <= / 1000000) by nra. split; [nra|]. replace (u ^ 4 * X) with (u ^ 2 * (u ^ 2 * X)) by ring. nra. }
  assert (KA : 0 <= k * u ^ 2 * A <= u * A / 8192).
  { split; [apply Rmult_le_pos; [apply Rmult_le_pos; nra|assumption]|].
    replace (k * u ^ 2 * A) with (k * u * (u * A)) by ring. nra. }
  assert (KX : 0 <= k * u ^ 2 * X) by (apply Rmult_le_pos; [apply Rmult_le_pos; nra|assumption]).
  assert (CX : Rabs (c + x) <= 2.1 * u * A + X) by (apply abs_sum; assumption).
  assert (Y : Rabs y <= (2.1 * u * A + X) * (1 + u)) by (apply abs_product; [assumption|now apply abs_one_plus]).
  assert (CD : Rabs ((c + x) * d1) <= (2.1 * u * A + X) * u) by (apply abs_product; assumption).
  assert (TY : Rabs (t + y) <= (A + X) * (1 + 2.01 * u)).
  { replace (t + y) with ((t + c - S) + (S + x) + (c + x) * d1) by (unfold y; ring).
    eapply Rle_trans; [apply abs_sum; [apply abs_sum; [exact He|apply abs_sum; [exact HS|exact Hx]]|exact CD]|].
    nra. }
  assert (TD : Rabs ((t + y) * d2) <= (A + X) * (1 + 2.01 * u) * u) by (apply abs_product; assumption).
  assert (D34 : Rabs ((1 + d4) * (1 + d3) - 1) <= 2.01 * u).
  { replace ((1 + d4) * (1 + d3) - 1) with (d4 + d3 + d4 * d3) by ring.
    eapply Rle_trans; [apply abs_sum; [apply abs_sum; [exact H4|exact H3]|apply (abs_product d4 d3 u u); assumption]|]. nra. }
  assert (D43 : Rabs ((1 + d4) * d3) <= (1 + u) * u) by (apply abs_product; [now apply abs_one_plus|assumption]).
  assert (E : t' - t = y + (t + y) * d2) by (unfold t'; ring).
  assert (C' : c' = - (y * ((1 + d4) * d3)) - ((t + y) * d2) * ((1 + d4) * (1 + d3))).
  { unfold c'. rewrite E. ring. }
  split; [|split].
  - replace (t' + c' - (S + x)) with
      ((t + c - S) + (c + x) * d1 + (- (y * ((1 + d4) * d3)))
       + (- (((t + y) * d2) * ((1 + d4) * (1 + d3) - 1)))).
    2:{ rewrite C'. unfold t', y. ring. }
    assert (P : Rabs (- (y * ((1 + d4) * d3))) <= (2.1 * u * A + X) * (1 + u) * ((1 + u) * u)).
    { rewrite Rabs_Ropp. apply abs_product; assumption. }
    assert (Q : Rabs (- (((t + y) * d2) * ((1 + d4) * (1 + d3) - 1)))
                <= (A + X) * (1 + 2.01 * u) * u * (2.01 * u)).
    { rewrite Rabs_Ropp. apply abs_product; assumption. }
    eapply Rle_trans; [apply abs_sum; [apply abs_sum; [apply abs_sum; [exact He|exact CD]|exact P]|exact Q]|].
    lra.
  - assert (P : Rabs (- (y * ((1 + d4) * d3))) <= (2.1 * u * A + X) * (1 + u) * ((1 + u) * u)).
    { rewrite Rabs_Ropp. apply abs_product; assumption. }
    assert (D : Rabs ((1 + d4) * (1 + d3)) <= (1 + u) * (1 + u))
      by (apply abs_product; now apply abs_one_plus).
    assert (Q : Rabs (- (((t + y) * d2) * ((1 + d4) * (1 + d3))))
                <= (A + X) * (1 + 2.01 * u) * u * ((1 + u) * (1 + u))).
    { rewrite Rabs_Ropp. apply abs_product; assumption. }
    rewrite C'. unfold Rminus. eapply Rle_trans; [apply abs_sum; [exact P|exact Q]|].
    lra.
  - replace (t' - (S + x)) with ((t + c - S) + (c + x) * d1 + (t + y) * d2) by (unfold t', y; ring).
    eapply Rle_trans; [apply abs_sum; [apply abs_sum; [exact He|exact CD]|exact TD]|].
    lra.
Qed.

(** The whole sum: first for the numbers themselves, then for numbers near sums. *)
Lemma compensated_numbers u numbers total missing :
  0 <= u <= / 1000 -> few u numbers -> compensated u numbers total missing ->
  let k := INR (length numbers) in
  let A := absolute_sum (fun a => a) numbers in
  Rabs (total + missing - sum numbers (fun a => a)) <= (2 * u + 12 * k * u ^ 2) * A
  /\ Rabs missing <= 2.1 * u * A
  /\ Rabs (total - sum numbers (fun a => a)) <= (3 * u + 12 * k * u ^ 2) * A.
Proof.
  intros Hu F C. induction C as [|x rest total missing d1 d2 d3 d4 C IH H1 H2 H3 H4 y t'].
  - cbn. rewrite !Rplus_0_l, Rminus_0_r, Rabs_R0. repeat split; lra.
  - unfold few in F. cbn [length] in *. rewrite S_INR in *.
    assert (F' : few u rest) by (unfold few; lra).
    destruct (IH F') as [P [Q _]]. unfold absolute_sum in *. cbn [sum].
    rewrite (Rplus_comm x), (Rplus_comm (Rabs x)).
    apply compensated_step; auto.
    + apply pos_INR.
    + apply sum_nonneg. intros. apply Rabs_pos.
    + apply sum_abs.
    + lra.
Qed.

Definition kahan_factor (u : R) : R := (1 + u) ^ 3 * (1 + u / 500).

Lemma near_parts_sums {T} F (x : T -> R) parts values :
  1 <= F -> near_parts F x parts values ->
  near F (sum values (fun a => a)) (sum (concat parts) x) (absolute_sum x (concat parts))
  /\ absolute_sum (fun a => a) values <= F * absolute_sum x (concat parts).
Proof.
  intros HF N. induction N as [|its a parts values Na N IH]; simpl; unfold absolute_sum in *.
  - simpl. split; [split; rewrite ?Rminus_0_r, Rabs_R0|]; lra.
  - rewrite !sum_app. destruct IH as [[P Q] W]. pose proof (near_size _ _ _ _ Na) as Sa.
    destruct Na as [Na Nb]. simpl. split; [split|].
    + replace (a + sum values (fun a => a) - (sum its x + sum (concat parts) x))
        with ((a - sum its x) + (sum values (fun a => a) - sum (concat parts) x)) by ring.
      eapply Rle_trans; [apply abs_sum; eassumption|]. lra.
    + eapply Rle_trans; [apply abs_sum; eassumption|]. lra.
    + lra.
Qed.

Lemma near_compensated {T} u F (x : T -> R) parts values total missing :
  0 <= u <= / 1000 -> 1 <= F -> few u parts -> near_parts F x parts values ->
  compensated u values total missing ->
  near (F * kahan_factor u) total (sum (concat parts) x) (absolute_sum x (concat parts)).
Proof.
  intros Hu HF Few N C. destruct (near_parts_sums F x parts values HF N) as [[P Q] W].
  assert (L : length parts = length values) by (clear - N; induction N; simpl; congruence).
  assert (Few' : few u values) by (unfold few in *; now rewrite <- L).
  destruct (compensated_numbers u values total missing Hu Few' C) as [_ [_ K]].
  unfold few in Few'. set (k := INR (length values)) in *.
  set (A := absolute_sum x (concat parts)) in *. assert (A0 : 0 <= A) by apply absolute_sum_nonneg.
  set (B := absolute_sum (fun a => a) values) in *. assert (B0 : 0 <= B) by apply absolute_sum_nonneg.
  assert (KF : 3 * u + 12 * k * u ^ 2 <= kahan_factor u - 1).
  { unfold kahan_factor. assert (12 * k * u ^ 2 <= u / 600).
    { replace (12 * k * u ^ 2) with (12 * (k * u) * u) by ring. nra. }
    assert (1 + 3 * u <= (1 + u) ^ 3) by nra. nra. }
  assert (K0 : 0 <= k) by apply pos_INR.
  assert (0 <= 12 * k * u ^ 2) by (apply Rmult_le_pos; [lra|nra]).
  split; [|assumption].
  replace (total - sum (concat parts) x)
    with ((total - sum values (fun a => a)) + (sum values (fun a => a) - sum (concat parts) x)) by ring.
  eapply Rle_trans; [apply abs_sum; [exact K|exact P]|].
  assert ((3 * u + 12 * k * u ^ 2) * B <= (kahan_factor u - 1) * (F * A)).
  { apply Rmult_le_compat; nra. }
  nra.
Qed.

(** ** The sums of blocks as coded *)

Lemma kahan_factor_one u : 0 <= u -> 1 <= kahan_factor u.
Proof. intros. unfold kahan_factor. pose proof (power_at_least_one u 3 H). nra. Qed.

Section Coded.
Context {T : Type} (u : R) (x y : T -> R) (own b blocks : nat).
Context (unit_small : 0 <= u <= / 1000).
Context (own_terms : forall i, Rabs (y i - x i) <= ((1 + u) ^ own - 1) * Rabs (x i)).

Definition block_factor : R := (1 + u) ^ (own + b - 1).

Lemma near_blocks parts values :
  Forall2 (block_sum u y b) parts values -> near_parts block_factor x parts values.
Proof.
  intros H. induction H as [|its a parts values [o [E [D S]]] H IH]; constructor; [|assumption].
  subst its. apply near_weaken with ((1 + u) ^ own * (1 + u) ^ depth o).
  - unfold block_factor. rewrite <- pow_add. apply power_le; [lra|lia].
  - apply near_tree with (y := y); auto; [lra|]. apply power_at_least_one. lra.
Qed.

Definition array_factor : R := (1 + u) ^ (own + b + blocks - 2) * (1 + u / 500).

Lemma near_array its total :
  (1 <= b)%nat -> (1 <= blocks)%nat ->
  sum_of_blocks u y b blocks its total -> near array_factor total (sum its x) (absolute_sum x its).
Proof.
  intros Hb Hm S. assert (F1 : 1 <= block_factor) by (apply power_at_least_one; lra).
  destruct S as [parts values total N L A|parts values total missing N L F C].
  - eapply near_weaken; [|eapply near_added; [|exact F1|apply near_blocks; exact N|exact A]]; [|lra].
    unfold block_factor, array_factor. rewrite <- pow_add.
    assert (E : (1 + u) ^ (own + b - 1 + (length parts - 1)) <= (1 + u) ^ (own + b + blocks - 2))
      by (apply power_le; [lra|lia]).
    pose proof (power_at_least_one u (own + b + blocks - 2)). nra.
  - eapply near_weaken; [|eapply near_compensated; [exact unit_small|exact F1|exact F|apply near_blocks; exact N|exact C]].
    unfold block_factor, array_factor, kahan_factor. rewrite <- Rmult_assoc, <- pow_add.
    apply Rmult_le_compat_r; [nra|]. apply power_le; [lra|lia].
Qed.

Lemma near_coded its total :
  (1 <= b)%nat -> (1 <= blocks)%nat -> sum_as_coded u y b blocks its total ->
  near ((1 + u) ^ (own + b + blocks + 1) * (1 + u / 100)) total (sum its x) (absolute_sum x its).
Proof.
  intros Hb Hm S.
  assert (P : 1 <= (1 + u) ^ (own + b + blocks - 2)) by (apply power_at_least_one; lra).
  destruct S as [its total S|chunks values total missing N F C].
  - eapply near_weaken; [|apply near_array; eassumption]. unfold array_factor.
    apply Rmult_le_compat; try lra. apply power_le; [lra|lia].
  - assert (A1 : 1 <= array_factor) by (unfold array_factor; nra).
    eapply near_weaken; [|eapply near_compensated;
      [exact unit_small|exact A1|exact F| |exact C]].
    + unfold array_factor, kahan_factor.
      replace (own + b + blocks + 1)%nat with (own + b + blocks - 2 + 3)%nat by lia.
      rewrite pow_add. set (p := (1 + u) ^ (own + b + blocks - 2)) in *.
      pose proof (power_at_least_one u 3 (proj1 unit_small)) as Q. set (q := (1 + u) ^ 3) in *.
      replace (p * (1 + u / 500) * (q * (1 + u / 500))) with (p * q * ((1 + u / 500) * (1 + u / 500))) by ring.
      apply Rmult_le_compat_l; nra.
    + clear - N Hb Hm unit_small own_terms.
      induction N as [|its a chunks values S N IH]; constructor; [|assumption].
      now apply near_array.
Qed.
End Coded.

Theorem sums_as_coded_proof : sums_as_coded.
Proof.
  intros T u x y own b blocks its total Hu Hb Hm H S.
  now destruct (near_coded u x y own b blocks Hu H its total Hb Hm S).
Qed.

(** ** Answers *)

Lemma total_is_sum {row I} n (f : question row I) S x :
  total n f S x = sum (row_places n S) (row_term f S x).
Proof.
  unfold total, contribution, row_places. generalize (range n) as l.
  induction l as [|i l IH]; simpl; [reflexivity|]. rewrite sum_app, <- IH, sum_map. reflexivity.
Qed.

Lemma sum_permutation {I} (l k : list I) f : Permutation l k -> sum l f = sum k f.
Proof. intros P. induction P; simpl; try rewrite IHP; try ring; congruence. Qed.

Theorem answers_as_coded_proof : answers_as_coded.
Proof.
  intros row I u own b blocks n f S answer Hu Hb Hm H x.
  destruct (H x) as [y [its [P [Y C]]]]. rewrite total_is_sum.
  rewrite <- !(sum_permutation its (row_places n S)) by assumption.
  apply (sums_as_coded_proof _ u (row_term f S x) y own b blocks its (answer x)); assumption.
Qed.

(** Entries that are off by a share of the absolute values of their terms: the norm of the error. *)
Lemma norm_monotone {I} (l : list I) u v :
  (forall i, In i l -> Rabs (u i) <= v i) -> norm l u <= norm l v.
Proof.
  intros H. unfold norm, dot. apply sqrt_le_1_alt. apply sum_le. intros i Hi. specialize (H i Hi).
  assert (u i * u i = Rabs (u i) * Rabs (u i)) as -> by (rewrite <- Rabs_mult, Rabs_pos_eq; nra).
  pose proof (Rabs_pos (u i)). nra.
Qed.

Lemma norm_abs {I} (l : list I) u : norm l (fun i => Rabs (u i)) = norm l u.
Proof.
  unfold norm, dot. f_equal. apply sum_ext. intros i _. rewrite <- Rabs_mult. apply Rabs_pos_eq. nra.
Qed.

Lemma sum_shares {row} n (S : data row) c :
  all_valid n S -> 0 <= c ->
  sum (row_places n S) (fun place => share (S (fst place)) (snd place) * c) <= INR n * c.
Proof.
  intros V Hc. unfold row_places. replace (INR n * c) with (sum (range n) (fun _ => c))
    by (rewrite sum_const, length_range; reflexivity).
  assert (H : forall l, (forall i, In i l -> valid (S i)) ->
    sum (flat_map (fun i => map (pair i) (range (size (S i)))) l)
      (fun place => share (S (fst place)) (snd place) * c) <= sum l (fun _ => c)).
  { induction l as [|i l IH]; intros W; simpl; [lra|]. rewrite sum_app, sum_map. cbn [fst snd].
    destruct (W i (or_introl eq_refl)) as [_ Sh].
    rewrite (sum_ext _ _ (fun j => c * share (S i) j)) by (intros; ring). rewrite sum_scale.
    assert (sum (flat_map (fun i => map (pair i) (range (size (S i)))) l)
      (fun place => share (S (fst place)) (snd place) * c) <= sum l (fun _ => c))
      by (apply IH; intros; apply W; now right). nra. }
  apply H. intros i Hi. apply V. now apply in_range.
Qed.

Lemma place_is_valid {row} n (S : data row) place :
  all_valid n S -> In place (row_places n S) -> 0 <= share (S (fst place)) (snd place).
Proof.
  intros V H. unfold row_places in H. apply in_flat_map in H. destruct H as [i [Hi Hj]].
  apply in_map_iff in Hj. destruct Hj as [j [<- Hj]]. cbn. apply in_range in Hi. apply in_range in Hj.
  destruct (V i Hi) as [W _]. auto.
Qed.

(** The norm of the vector of absolute sums of the terms. *)
Lemma absolute_terms {row I} (places : list I) n (f : question row I) S c :
  all_valid n S -> 0 <= c -> (forall i j r, norm places (f i j r) <= c) ->
  norm places (fun x => sum (row_places n S) (fun place => Rabs (row_term f S x place))) <= INR n * c.
Proof.
  intros V Hc H.
  apply Rle_trans with (sum (row_places n S) (fun place => share (S (fst place)) (snd place) * c));
    [|now apply sum_shares].
  set (rows := fun place : nat * nat => row_at (S (fst place)) (snd place)).
  rewrite (norm_ext _ _ (fun x => sum (row_places n S) (fun place =>
    share (S (fst place)) (snd place) * Rabs (f (fst place) (snd place) (rows place) x)))).
  - eapply Rle_trans; [apply norm_sum|]. apply sum_le. intros place Hp.
    pose proof (place_is_valid n S place V Hp). rewrite Rabs_pos_eq by assumption.
    rewrite norm_abs. apply Rmult_le_compat_l; auto.
  - intros x _. apply sum_ext. intros place Hp. unfold row_term, rows.
    rewrite Rabs_mult, (Rabs_pos_eq (share _ _)); [reflexivity|]. now apply (place_is_valid n).
Qed.

Lemma computed_norm {row I} (places : list I) n (f : question row I) S c relative answer :
  all_valid n S -> 0 <= c -> 0 <= relative -> (forall i j r, norm places (f i j r) <= c) ->
  computed relative n f S answer -> norm places (minus answer (total n f S)) <= relative * (INR n * c).
Proof.
  intros V Hc Hr H C.
  apply Rle_trans with (norm places (fun x => relative *
    sum (row_places n S) (fun place => Rabs (row_term f S x place)))).
  - apply norm_monotone. intros x _. apply C.
  - rewrite norm_scale, Rabs_pos_eq by assumption. apply Rmult_le_compat_l; [assumption|].
    now apply absolute_terms.
Qed.

Lemma unit64_small : 0 <= / 2 ^ 53 <= / 1000.
Proof. split; [left; apply Rinv_0_lt_compat; lra|]. apply Rinv_le_contravar; lra. Qed.

Lemma unit32_small : 0 <= / 2 ^ 24 <= / 1000.
Proof. split; [left; apply Rinv_0_lt_compat; lra|]. apply Rinv_le_contravar; lra. Qed.

Lemma square_norm {row} columns (a : nat -> nat -> row -> nat -> R) :
  (forall i j r, norm (range columns) (a i j r) <= 1) ->
  forall i j r, norm (grid columns columns) (square a i j r) <= 1.
Proof.
  intros H i j r. unfold square, grid. rewrite norm_outer. specialize (H i j r).
  pose proof (norm_nonneg (range columns) (a i j r)). nra.
Qed.

(** Two answers are as far apart as the exact ones, and both errors. *)
Lemma apart {I} (places : list I) u v x y p q r :
  norm places (minus x y) <= p -> norm places (minus u x) <= q -> norm places (minus v y) <= r ->
  norm places (minus u v) <= p + q + r.
Proof.
  intros P Q T.
  rewrite (norm_ext places (minus u v) (fun i => (minus x y i + minus u x i) + (-1) * minus v y i))
    by (unfold minus; intros; ring).
  eapply Rle_trans; [apply (norm_triangle places (fun i => minus x y i + minus u x i))|].
  rewrite norm_scale, Rabs_left by lra.
  pose proof (norm_triangle places (minus x y) (minus u x)). lra.
Qed.

Theorem replace_one_moment_float64_proof : replace_one_moment_float64.
Proof.
  intros row d a n b blocks H Small S S' answer answer' V V' N relative C C'.
  pose proof (replace_one_moment_proof row d a H n S S' V V' N) as E.
  pose proof (square_norm d a H) as F. pose proof unit64_small as U.
  assert (R0 : 0 <= relative) by (apply growth_nonneg; cbn; lra).
  pose proof (computed_norm (grid d d) n (square a) S 1 relative answer V Rle_0_1 R0 F C) as P.
  pose proof (computed_norm (grid d d) n (square a) S' 1 relative answer' V' Rle_0_1 R0 F C') as Q.
  assert (G : relative <= 1.004 * (INR (b + blocks + 8) * / 2 ^ 53)).
  { unfold relative. replace (7 + b + blocks + 1)%nat with (b + blocks + 8)%nat by lia.
    apply growth_first_order; [lra|lia|cbn -[pow INR] in Small; lra]. }
  eapply Rle_trans; [apply (apart _ _ _ _ _ _ _ _ E P Q)|]. cbn -[pow growth] in *. rewrite !plus_INR in *.
  replace (INR 8) with 8 in * by (simpl; ring).
  pose proof (pos_INR n). pose proof (pos_INR b). pose proof (pos_INR blocks).
  set (m := INR b + INR blocks + 8) in *.
  assert (0 <= m * / 2 ^ 53) by (apply Rmult_le_pos; lra).
  set (w := m * / 2 ^ 53) in *.
  assert (relative * (INR n * 1) <= 1.004 * w * (INR n * 1)) by (apply Rmult_le_compat_r; lra).
  assert (0 <= w * INR n) by (apply Rmult_le_pos; lra). lra.
Qed.

Theorem group_of_float32_proof : group_of_float32.
Proof.
  intros row d g a S found H V Small C. pose proof unit32_small as U.
  pose proof (square_norm d a H) as F.
  set (relative := growth (value unit_float32 []) (g + 8)) in *.
  assert (R0 : 0 <= relative) by (apply growth_nonneg; cbn; lra).
  pose proof (computed_norm (grid d d) g (square a) S 1 relative found V Rle_0_1 R0 F C) as P.
  rewrite Rmult_1_r in P. split; [exact P|].
  assert (G : relative <= 1.004 * (INR (g + 8) * / 2 ^ 24)).
  { apply growth_first_order; [lra|lia|cbn -[pow INR] in Small; lra]. }
  assert (T : norm (grid d d) (total g (square a) S) <= INR g * 1).
  { eapply Rle_trans; [|apply (absolute_terms (grid d d) g (square a) S 1 V Rle_0_1 F)].
    apply norm_monotone. intros x _. rewrite total_is_sum. apply sum_abs. }
  rewrite (norm_ext _ found (fun x => minus found (total g (square a) S) x + total g (square a) S x))
    by (unfold minus; intros; ring).
  eapply Rle_trans; [apply norm_triangle|]. cbn in Small. pose proof (pos_INR g). nra.
Qed.

Theorem replace_one_moment_float32_proof : replace_one_moment_float32.
Proof.
  intros d n b blocks g rest exact exact' found found' answer answer' A A' places
    G1 Small32 Small64 E N N' relative C C' HA HA'.
  pose proof unit64_small as U. pose proof unit32_small as V.
  assert (R0 : 0 <= relative) by (apply growth_nonneg; cbn; lra).
  assert (G : relative <= 1.004 * (INR (b + blocks + 8) * / 2 ^ 53)).
  { unfold relative. replace (7 + b + blocks + 1)%nat with (b + blocks + 8)%nat by lia.
    apply growth_first_order; [lra|lia|cbn -[pow INR] in Small64; lra]. }
  assert (G' : growth (/ 2 ^ 24) (g + 8) <= 1.004 * (INR (g + 8) * / 2 ^ 24)).
  { apply growth_first_order; [lra|lia|cbn -[pow INR] in Small32; lra]. }
  set (s := fun x => rest x + found x). set (s' := fun x => rest x + found' x).
  assert (D : forall (v B : nat * nat -> R) t, (forall x, Rabs (v x - t x) <= relative * B x) ->
    norm places B <= INR n * (1 + / 500) -> norm places (minus v t) <= relative * (INR n * (1 + / 500))).
  { intros v B t H1 H2. eapply Rle_trans; [apply (norm_monotone places _ (fun x => relative * B x)); intros; apply H1|].
    rewrite norm_scale, Rabs_pos_eq by assumption. now apply Rmult_le_compat_l. }
  pose proof (D answer A s C HA) as P. pose proof (D answer' A' s' C' HA') as P'.
  assert (Q : norm places (minus s s') <= sqrt 2 + growth (/ 2 ^ 24) (g + 8) * INR g + growth (/ 2 ^ 24) (g + 8) * INR g).
  { rewrite (norm_ext places (minus s s') (minus found found')) by (unfold minus, s, s'; intros; ring).
    apply (apart places found found' exact exact'); assumption. }
  eapply Rle_trans; [apply (apart _ _ _ _ _ _ _ _ Q P P')|]. cbn -[pow growth] in *. rewrite !plus_INR in *.
  replace (INR 8) with 8 in * by (simpl; ring).
  pose proof (pos_INR n). pose proof (pos_INR b). pose proof (pos_INR blocks). pose proof (pos_INR g).
  set (m := INR b + INR blocks + 8) in *.
  assert (0 <= m * / 2 ^ 53) by (apply Rmult_le_pos; lra).
  set (w := m * / 2 ^ 53) in *.
  assert (0 <= (INR g + 8) * / 2 ^ 24) by (apply Rmult_le_pos; lra).
  set (v := (INR g + 8) * / 2 ^ 24) in *.
  assert (X : relative * (INR n * (1 + / 500)) <= 101 / 100 * (INR n * w)).
  { assert (relative * (INR n * (1 + / 500)) <= 1.004 * w * (INR n * (1 + / 500))).
    { apply Rmult_le_compat_r; [apply Rmult_le_pos; lra|]. lra. }
    assert (0 <= w * INR n) by (apply Rmult_le_pos; lra). lra. }
  assert (Y : growth (/ 2 ^ 24) (g + 8) * INR g <= 102 / 100 * (v * INR g)).
  { apply Rle_trans with (1.004 * v * INR g); [apply Rmult_le_compat_r; lra|].
    assert (0 <= v * INR g) by (apply Rmult_le_pos; lra). lra. }
  replace (204 / 100 * / 2 ^ 24 * ((INR g + 8) * INR g)) with (2 * (102 / 100 * (v * INR g)))
    by (unfold v; field; apply pow_nonzero; lra).
  replace (101 / 100 * (INR n * (2 * (m * / 2 ^ 53)))) with (2 * (101 / 100 * (INR n * w)))
    by (unfold w; field; apply pow_nonzero; lra).
  lra.
Qed.

(** ** Gradients *)

Theorem gradient_float64_proof : gradient_float64.
Proof.
  intros row d K n b blocks clip ev z p cp S answer u Hc He Hz Hp Hcp Small V C.
  pose proof unit64_small as U. assert (U' : u = / 2 ^ 53) by reflexivity. clearbody u.
  set (f := slopes_times_rows p z). set (g := slopes_times_rows cp z) in *.
  assert (Outer : forall q i j r c, 0 <= c -> norm (range K) (q i j r) <= c ->
    norm (grid d K) (slopes_times_rows q z i j r) <= c).
  { intros q i j r c H0 H. unfold slopes_times_rows, grid. rewrite norm_outer.
    specialize (Hz i j r). pose proof (norm_nonneg (range d) (z i j r)).
    pose proof (norm_nonneg (range K) (q i j r)). nra. }
  assert (E0 : 0 <= ev * u) by (rewrite U'; apply Rmult_le_pos; lra).
  assert (Fg : forall i j r, norm (grid d K) (g i j r) <= clip + ev * u).
  { intros. apply Outer; [lra|].
    rewrite (norm_ext _ _ (fun k => minus (cp i j r) (p i j r) k + p i j r k)) by (unfold minus; intros; ring).
    eapply Rle_trans; [apply norm_triangle|]. specialize (Hp i j r). specialize (Hcp i j r). lra. }
  set (relative := growth u (4 + b + blocks + 1)) in *.
  assert (R0 : 0 <= relative) by (apply growth_nonneg; rewrite U'; lra).
  pose proof (computed_norm (grid d K) n g S (clip + ev * u) relative answer V ltac:(lra) R0 Fg C) as P.
  (* The computed slopes instead of the exact ones. *)
  assert (Q : norm (grid d K) (minus (total n g S) (total n f S)) <= INR n * (ev * u)).
  { set (q := fun i j r => minus (cp i j r) (p i j r)).
    assert (Fq : forall i j r, norm (grid d K) (slopes_times_rows q z i j r) <= ev * u)
      by (intros; apply Outer; [assumption|apply Hcp]).
    pose proof (absolute_terms (grid d K) n (slopes_times_rows q z) S (ev * u) V E0 Fq) as A.
    eapply Rle_trans; [|exact A]. apply norm_monotone. intros x _. unfold minus. rewrite !total_is_sum.
    rewrite <- sum_minus. eapply Rle_trans; [apply sum_abs|]. apply sum_le. intros place _. right.
    f_equal. unfold row_term, g, f, slopes_times_rows, q, minus. ring. }
  assert (M : INR (b + blocks + 5) * u <= / 1000) by exact Small.
  assert (G : relative <= 1.004 * ((INR b + INR blocks + 8) * u)).
  { unfold relative. apply Rle_trans with (growth u (b + blocks + 8)).
    - unfold growth. apply Rplus_le_compat_r. apply Rmult_le_compat_r; [rewrite U'; lra|].
      apply power_le; [rewrite U'; lra|lia].
    - replace (INR b + INR blocks + 8) with (INR (b + blocks + 8)) by (rewrite !plus_INR; simpl; ring).
      apply growth_first_order; [rewrite U'; lra|lia|].
      rewrite !plus_INR in *. simpl (INR 5) in M. simpl (INR 8).
      assert (u <= / 100000) by (rewrite U'; apply Rinv_le_contravar; lra). lra. }
  rewrite (norm_ext _ _ (fun x => minus answer (total n g S) x + minus (total n g S) (total n f S) x))
    by (unfold minus; intros; ring).
  eapply Rle_trans; [apply norm_triangle|]. cbn -[pow growth] in *. rewrite !plus_INR in M. simpl (INR 5) in M.
  pose proof (pos_INR n). pose proof (pos_INR b). pose proof (pos_INR blocks).
  rewrite <- U'. set (m := INR b + INR blocks) in *.
  assert (UP : 0 < u) by (rewrite U'; apply Rinv_0_lt_compat; lra).
  assert (MU : (m + 8) * u <= / 900) by (assert (u <= / 100000) by (rewrite U'; apply Rinv_le_contravar; lra); lra).
  assert (N1 : 0 <= INR n * clip) by (apply Rmult_le_pos; lra).
  assert (N2 : 0 <= INR n * ev) by (apply Rmult_le_pos; lra).
  assert (N3 : 0 <= INR n * ev * u) by (apply Rmult_le_pos; lra).
  assert (W : 0 <= u * (INR n * clip)) by (apply Rmult_le_pos; lra).
  assert (W' : 0 <= m * u * (INR n * clip)).
  { apply Rmult_le_pos; [apply Rmult_le_pos; unfold m; lra|assumption]. }
  assert (X : relative * (INR n * (clip + ev * u)) <= 1.004 * ((m + 8) * u) * (INR n * (clip + ev * u))).
  { apply Rmult_le_compat_r; [|exact G]. apply Rmult_le_pos; lra. }
  assert (Y : 1.004 * ((m + 8) * u) * (INR n * ev * u) <= 0.002 * (INR n * ev * u)).
  { apply Rmult_le_compat_r; lra. }
  lra.
Qed.

(** ** Groups of a gradient, and products with a map *)

Theorem gradient_group_float32_proof : gradient_group_float32.
Proof.
  intros row d K g clip stretch z p S found Hc Hs Hz Hp Hg Small V C Short.
  pose proof unit32_small as U.
  set (f := slopes_times_rows p z) in *.
  assert (F : forall i j r, norm (grid d K) (f i j r) <= clip).
  { intros i j r. unfold f, slopes_times_rows, grid. rewrite norm_outer.
    specialize (Hz i j r). specialize (Hp i j r). pose proof (norm_nonneg (range d) (z i j r)).
    pose proof (norm_nonneg (range K) (p i j r)). nra. }
  set (relative := growth (value unit_float32 []) (g + 6)) in *.
  assert (R0 : 0 <= relative) by (apply growth_nonneg; cbn; lra).
  pose proof (computed_norm (grid d K) g f S clip relative found V Hc R0 F C) as P.
  assert (G : relative <= 1.004 * (INR (g + 6) * / 2 ^ 24)).
  { apply growth_first_order; [lra|lia|]. cbn -[pow INR] in Small. lra. }
  cbn -[pow growth INR] in Short |- *. rewrite plus_INR in G. replace (INR 6) with 6 in G by (simpl; ring).
  pose proof (pos_INR g). set (n := INR g) in *. set (v := / 2 ^ 24) in *. set (w := / 2 ^ 9) in *.
  set (e := norm _ _) in *.
  assert (0 <= v * (n + 6)) by (apply Rmult_le_pos; lra).
  assert (A : relative * (n * clip) <= 1.02 * (v * (n + 6)) * (n * clip)).
  { apply Rmult_le_compat_r; [apply Rmult_le_pos; lra|]. fold v in G. lra. }
  apply Rle_trans with (stretch * (1.02 * (v * (n + 6)) * (n * clip))).
  - apply Rmult_le_compat_l; lra.
  - replace (stretch * (1.02 * (v * (n + 6)) * (n * clip)))
      with ((102 / 100 * v * n * (n + 6) * stretch) * clip) by lra.
    now apply Rmult_le_compat_r.
Qed.

Theorem replace_one_group_float32_proof : replace_one_group_float32.
Proof.
  intros I J places images stretch clip moved L rest exact exact' found found' [L1 [L2 L3]] M E E'.
  set (w := value single_share [] * clip) in *.
  assert (X : forall u v, norm images (minus (L u) (L v)) <= stretch * norm places (minus u v))
    by (intros; rewrite L1; apply L2).
  assert (Y : norm images (minus (L (minus (fun i => rest i + found i) (fun i => rest i + found' i)))
                                (L (minus found found'))) = 0).
  { apply L3. intros i. unfold minus. ring. }
  rewrite L1.
  set (a := L (minus (fun i => rest i + found i) (fun i => rest i + found' i))) in *.
  assert (Z : norm images a <= norm images (L (minus found found'))).
  { rewrite (norm_ext images a (fun i => minus a (L (minus found found')) i + L (minus found found') i))
      by (unfold minus; intros; ring).
    eapply Rle_trans; [apply norm_triangle|]. rewrite Y. lra. }
  eapply Rle_trans; [exact Z|]. rewrite <- L1.
  pose proof (X found exact). pose proof (X found' exact').
  eapply Rle_trans; [apply (apart images (L found) (L found') (L exact) (L exact') moved w w)|]; lra.
Qed.

Theorem groups_exist_proof : groups_exist.
Proof.
  unfold groups_exist. cbn -[pow]. rewrite !Rmult_assoc.
  assert (A : sqrt (1 + 1 / 4) * sqrt (1 + 4) = 5 / 2).
  { rewrite <- sqrt_mult by lra. replace ((1 + 1 / 4) * (1 + 4)) with (5 / 2 * (5 / 2)) by field.
    apply sqrt_square. lra. }
  rewrite A. lra.
Qed.

(** The absolute values of a product: Cauchy and Schwarz for each entry. *)
Lemma absolute_product outputs columns classes (map sums : nat * nat -> R) :
  norm (grid outputs classes) (fun x => sum (range columns) (fun j => Rabs (map (fst x, j) * sums (j, snd x))))
  <= norm (grid outputs columns) map * norm (grid columns classes) sums.
Proof.
  apply norm_le; [apply Rmult_le_pos; apply norm_nonneg|].
  replace (norm (grid outputs columns) map * norm (grid columns classes) sums
           * (norm (grid outputs columns) map * norm (grid columns classes) sums))
    with (dot (grid outputs columns) map map * dot (grid columns classes) sums sums)
    by (rewrite <- !norm_square; ring).
  assert (E : dot (grid columns classes) sums sums
    = sum (range classes) (fun k => dot (range columns) (fun j => sums (j, k)) (fun j => sums (j, k)))).
  { unfold dot, grid. rewrite sum_prod. apply sum_swap. }
  assert (D : dot (grid outputs columns) map map
    = sum (range outputs) (fun i => dot (range columns) (fun j => map (i, j)) (fun j => map (i, j)))).
  { unfold dot, grid. now rewrite sum_prod. }
  rewrite E, D. unfold dot at 1, grid. rewrite sum_prod. cbn [fst snd].
  rewrite Rmult_comm, <- sum_scale. apply sum_le. intros i _. rewrite Rmult_comm, <- sum_scale.
  apply sum_le. intros k _.
  rewrite (sum_ext (range columns) (fun j => Rabs (map (i, j) * sums (j, k)))
    (fun j => Rabs (map (i, j)) * Rabs (sums (j, k)))) by (intros; apply Rabs_mult).
  pose proof (cauchy_schwarz (range columns) (fun j => Rabs (map (i, j))) (fun j => Rabs (sums (j, k)))) as C.
  assert (S : forall (t : nat -> R), dot (range columns) (fun j => Rabs (t j)) (fun j => Rabs (t j))
    = dot (range columns) t t).
  { intros t. unfold dot. apply sum_ext. intros. rewrite <- Rabs_mult. apply Rabs_pos_eq. nra. }
  rewrite (S (fun j => map (i, j))), (S (fun j => sums (j, k))) in C. exact C.
Qed.

Theorem product_with_map_proof : product_with_map.
Proof.
  intros outputs d K stretch map sums answer u Hs Small F C.
  pose proof unit64_small as U. assert (U' : u = / 2 ^ 53) by reflexivity. clearbody u.
  set (relative := growth u (d + 4)) in *.
  assert (R0 : 0 <= relative) by (apply growth_nonneg; rewrite U'; lra).
  assert (G : relative <= 1.004 * (INR (d + 4) * u)).
  { apply growth_first_order; [rewrite U'; lra|lia|lra]. }
  apply Rle_trans with (relative * (norm (grid outputs d) map * norm (grid d K) sums)).
  - eapply Rle_trans; [apply (norm_monotone _ _ (fun x => relative *
      sum (range d) (fun j => Rabs (map (fst x, j) * sums (j, snd x)))))|].
    + intros [i k] _. apply C.
    + rewrite norm_scale, Rabs_pos_eq by assumption. apply Rmult_le_compat_l; [assumption|].
      apply absolute_product.
  - cbn -[pow growth INR]. rewrite <- U'. rewrite plus_INR in G. replace (INR 4) with 4 in G by (simpl; ring).
    pose proof (pos_INR d). pose proof (norm_nonneg (grid d K) sums). pose proof (norm_nonneg (grid outputs d) map).
    pose proof (sqrt_pos (INR d + 2)). set (q := sqrt (INR d + 2)) in *.
    assert (P : 0 <= (INR d + 4) * u) by (apply Rmult_le_pos; rewrite ?U'; lra).
    assert (A : relative * norm (grid outputs d) map <= 1.01 * ((INR d + 4) * u) * (stretch * q)).
    { apply Rmult_le_compat; lra. }
    rewrite <- Rmult_assoc.
    apply Rle_trans with (1.01 * ((INR d + 4) * u) * (stretch * q) * norm (grid d K) sums).
    + now apply Rmult_le_compat_r.
    + right. lra.
Qed.
