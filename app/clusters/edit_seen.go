package clusters

import (
	"maps"

	"loom/app/loom"
)

// Written is what people write about a cluster.
type Written struct {
	Description string
	Labels      map[string]string
}

// EditConflict is the cause of a Conflict of Edit: somebody else wrote meanwhile about
// what was to be changed. Stored is what he wrote.
type EditConflict struct{ Stored Written }

// Error says that there are two texts.
func (e *EditConflict) Error() string { return "description or labels were changed meanwhile" }

// since leaves out of an edit what says the same as what its author had seen: that stays
// as it is by now. Conflict, with an *EditConflict, where somebody else has changed what
// the author changed, to something else.
func (in EditInput) since(c loom.Cluster) (EditInput, error) {
	if in.Seen == nil {
		return in, nil
	}
	clash := false
	if in.Description != nil {
		if *in.Description == in.Seen.Description {
			in.Description = nil
		} else {
			clash = c.Description != in.Seen.Description && c.Description != *in.Description
		}
	}
	if in.Labels != nil {
		if maps.Equal(in.Labels, in.Seen.Labels) {
			in.Labels = nil
		} else if !maps.Equal(c.Labels, in.Seen.Labels) && !maps.Equal(c.Labels, in.Labels) {
			clash = true
		}
	}
	if clash {
		return in, &loom.Error{Kind: loom.Conflict, Err: &EditConflict{Stored: Written{Description: c.Description, Labels: c.Labels}},
			Message: "Somebody else has changed this since you began to write."}
	}
	return in, nil
}
