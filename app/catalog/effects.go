package catalog

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"slices"

	"loom/app/loom"
)

// Effect is what storing an entry would do to a template that builds on it.
type Effect struct {
	Template string
	// Changes are those of the merged template.
	Changes []Difference
	// Problem says why the template could not be merged any more, Before why it cannot
	// be now; both are "" where it can.
	Problem, Before string
}

// Effects says how the templates that build on a template or partial template would
// change if it were stored as given. It changes nothing. They come by name; those
// that stay as they are have no changes.
func (c *Catalog) Effects(ctx context.Context, actor loom.Actor, kind loom.EntityKind, entry loom.Entry) ([]Effect, error) {
	tenant, err := readTenant(actor, kind)
	if err != nil {
		return nil, err
	}
	if entry, _, err = normalize(kind, entry); err != nil {
		return nil, err
	}
	f, err := c.finder(ctx, c.db, tenant, []loom.EntityKind{loom.KindTemplate, loom.KindPartialTemplate})
	if err != nil {
		return nil, err
	}
	children := slices.Sorted(maps.Keys(f.children(kind, entry.Meta().Name)))
	before := f.mergeAll(children)
	f.add(kind, entry)
	f.merged = map[string]mergeResult{}
	after := f.mergeAll(children)
	effects := []Effect{}
	for i, name := range children {
		if name == entry.Meta().Name && kind == loom.KindTemplate {
			continue
		}
		e := Effect{Template: name, Before: mergeProblem(before[i]), Problem: mergeProblem(after[i])}
		if e.Before == "" && e.Problem == "" {
			e.Changes = Differences(mergedTree(before[i]), mergedTree(after[i]))
		}
		effects = append(effects, e)
	}
	return effects, nil
}

func (f *finder) mergeAll(names []string) []mergeResult {
	out := make([]mergeResult, len(names))
	for i, name := range names {
		if t, ok := f.entries[loom.KindTemplate][name].(*loom.Template); ok {
			out[i] = f.merge(t)
		}
	}
	return out
}

func mergeProblem(r mergeResult) string {
	if r.err == nil {
		return ""
	}
	e := loom.AsError(r.err)
	if len(e.Fields) > 0 {
		return e.Fields[0].Message
	}
	return e.Message
}

// mergedTree is a merged template as JSON values, without what it was made from.
func mergedTree(r mergeResult) any {
	t := r.template
	t.Extends, t.Includes, t.Locked, t.Version = nil, nil, nil, 0 // what is locked its parts say
	body, err := json.Marshal(t)
	if err != nil {
		return nil
	}
	d := json.NewDecoder(bytes.NewReader(body))
	d.UseNumber()
	var tree any
	if d.Decode(&tree) != nil {
		return nil // it was just written
	}
	return tree
}
