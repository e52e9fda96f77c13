package clusters_test

import (
	"errors"
	"maps"
	"testing"

	"loom/app/clusters"
	"loom/app/loom"
)

// Who writes about a cluster changes what he changed, not what somebody else changed
// meanwhile; where both changed the same, the second is told.
func TestEditsOfTwo(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ref := b.create(b.ana(), 2)
	labels := func(pairs ...string) map[string]string {
		m := map[string]string{}
		for i := 0; i < len(pairs); i += 2 {
			m[pairs[i]] = pairs[i+1]
		}
		return m
	}
	seen := &clusters.Written{Description: "one", Labels: labels("a", "1")}
	for name, c := range map[string]struct {
		stored      clusters.Written
		description *string
		labels      map[string]string
		want        clusters.Written
		clash       bool
	}{
		"nobody else":         {stored: *seen, description: new("two"), labels: labels("a", "2"), want: clusters.Written{Description: "two", Labels: labels("a", "2")}},
		"he changed labels":   {stored: clusters.Written{Description: "one", Labels: labels("b", "1")}, description: new("two"), labels: labels("a", "1"), want: clusters.Written{Description: "two", Labels: labels("b", "1")}},
		"he wrote the text":   {stored: clusters.Written{Description: "three", Labels: labels("a", "1")}, description: new("one"), labels: labels(), want: clusters.Written{Description: "three", Labels: labels()}},
		"both wrote the same": {stored: clusters.Written{Description: "two", Labels: labels("a", "1")}, description: new("two"), want: clusters.Written{Description: "two", Labels: labels("a", "1")}},
		"both wrote":          {stored: clusters.Written{Description: "three", Labels: labels("a", "1")}, description: new("two"), clash: true},
		"both have labels":    {stored: clusters.Written{Description: "one", Labels: labels("b", "1")}, labels: labels("a", "2"), clash: true},
	} {
		_, err := b.clusters.Edit(b.ctx, b.ana(), ref.Cluster, clusters.EditInput{Description: &c.stored.Description, Labels: c.stored.Labels})
		if err != nil {
			t.Fatal(err)
		}
		got, err := b.clusters.Edit(b.ctx, b.ana(), ref.Cluster, clusters.EditInput{Description: c.description, Labels: c.labels, Seen: seen})
		var conflict *clusters.EditConflict
		switch {
		case c.clash:
			wantKind(t, err, loom.Conflict)
			if !errors.As(err, &conflict) || conflict.Stored.Description != c.stored.Description || !maps.Equal(conflict.Stored.Labels, c.stored.Labels) {
				t.Errorf("%s: %v, %+v", name, err, conflict)
			}
		case err != nil || got.Description != c.want.Description || !maps.Equal(got.Labels, c.want.Labels):
			t.Errorf("%s: %q %v, %v", name, got.Description, got.Labels, err)
		}
	}
}
