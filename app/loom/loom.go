// Package loom is the domain of Loom: the nouns, their identifiers, statuses
// with their allowed transitions, shape checks and error kinds. Every other
// package speaks in these types.
//
// It imports the standard library only and does no I/O: no database, clock,
// file or network. Validate methods check shape, never existence. A newcomer's
// usual mistake: confusing an operation (a change to a cluster), a task (one
// step of it) and a River job (a row of the queue that delivers a task).
package loom
