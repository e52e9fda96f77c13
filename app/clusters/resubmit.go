package clusters

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"loom/app/loom"
	"loom/app/store"
)

// keptRequest is what is kept of a request until its operation begins: everything but
// provider fields that are secret.
func keptRequest(in PreviewInput) ([]byte, error) {
	data, err := json.Marshal(in)
	if err != nil {
		return nil, fmt.Errorf("encode the request for a %s: %w", in.Kind, err)
	}
	return data, nil
}

// Resubmit asks again for an operation that never began, because a hook refused it or
// somebody aborted it before: the same request, as if it were new. Errors: NotFound;
// Conflict for an operation that began, and for one whose request was not kept; those of
// the request itself.
func (u *Clusters) Resubmit(ctx context.Context, actor loom.Actor, of loom.OperationRef, fields map[string]any) (loom.OperationRef, error) {
	var none loom.OperationRef
	if err := actor.May(loom.Operate, actor.Mine()); err != nil {
		return none, err
	}
	in, err := u.Refused(ctx, actor, of)
	if err != nil {
		return none, err
	}
	if in.Kind == loom.ChangeCreate {
		for name, value := range fields {
			if in.Create.ProviderFields == nil {
				in.Create.ProviderFields = map[string]any{}
			}
			in.Create.ProviderFields[name] = value
		}
		return u.Create(ctx, actor, in.Create)
	}
	in.ProviderFields = fields
	ref, _, err := u.execute(ctx, actor, in, nil)
	return ref, err
}

// Refused reads the request for an operation that never began. Errors: NotFound, and
// Conflict for one that began and for one whose request was not kept.
func (u *Clusters) Refused(ctx context.Context, actor loom.Actor, of loom.OperationRef) (PreviewInput, error) {
	var in PreviewInput
	op, err := u.Operation(ctx, actor, of)
	if err != nil {
		return in, err
	}
	if !op.NeverBegan() {
		return in, loom.NewError(loom.Conflict, "Operation %d began; only one that was refused can be asked for again as it was.", of.Number)
	}
	data, err := store.OperationRequest(ctx, u.db, actor.Tenant, of)
	if err != nil {
		return in, err
	}
	if len(data) == 0 {
		return in, loom.NewError(loom.Conflict, "The request for operation %d was not kept; make it again.", of.Number)
	}
	d := json.NewDecoder(strings.NewReader(string(data)))
	d.UseNumber()
	if err := d.Decode(&in); err != nil {
		return in, fmt.Errorf("decode the request for operation %s: %w", of, err)
	}
	return in, nil
}
