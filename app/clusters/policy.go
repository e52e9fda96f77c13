package clusters

import (
	"cmp"

	"loom/app/loom"
)

// CheckPolicy finds what is wrong with the failure policy that a request for an
// operation names, about the field onFailure (changes.md 5). An action of "" is a
// request without an operation.
func CheckPolicy(action loom.ClusterAction, asked string) []loom.FieldError {
	if asked != loom.OnFailureUndo {
		return loom.CheckOnFailure("onFailure", asked)
	}
	why := loom.ChangeSync.Change().NotUndone
	if action != "" {
		why = action.WhyNotUndone()
	}
	if why == "" {
		return nil
	}
	return []loom.FieldError{{Field: "onFailure", Message: why + " Leave this out, or say “keep”."}}
}

// policy is what a failure of a create does.
func (d *draft) policy() string {
	return cmp.Or(d.Input.OnFailure, d.Template.Administration.OnFailure, loom.OnFailureKeep)
}

// policy settles what a failure does: the request says it, else the template, or the
// operation that is retried, as far as operations of the kind can be undone.
func (d *liveDraft) policy(asked, otherwise string) error {
	if errs := CheckPolicy(d.Action, asked); len(errs) > 0 {
		return loom.InvalidFields(errs)
	}
	d.AskedPolicy, d.OnFailure = asked, asked
	if asked == "" {
		d.OnFailure = otherwise
	}
	if d.OnFailure != loom.OnFailureUndo || !d.Action.Undoable() {
		d.OnFailure = loom.OnFailureKeep
	}
	return nil
}
