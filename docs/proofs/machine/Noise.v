(** Proofs of section 6: exact noise on a public grid. *)
From Coq Require Import Reals List Psatz.
From Machine Require Import Statements Vectors Rounding.
Import ListNotations.
Open Scope R_scope.

Theorem post_processing_proof : post_processing.
Proof. intros D O P near relation g M H S S' N event. exact (H S S' N (fun o => event (g o))). Qed.

Theorem noise_on_the_grid_proof : noise_on_the_grid.
Proof. intros D I near relation step limit M H. now apply post_processing_proof. Qed.

Theorem clipping_shrinks_proof : clipping_shrinks.
Proof.
  intros I places limit u v. rewrite <- (norm_abs places (minus u v)). apply norm_monotone.
  intros i _. unfold minus, clip_to, Rmax, Rmin.
  repeat destruct Rle_dec; unfold Rabs; repeat destruct Rcase_abs; lra.
Qed.
