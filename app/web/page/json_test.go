package page

import (
	"slices"
	"strings"
	"testing"

	"loom/app/catalog"
)

func TestDifferences(t *testing.T) {
	t.Parallel()
	from := ParseTree([]byte(`{"same": [1, {"x": 2}], "gone": true, "old": "a", "list": [1, 2], "big": "` + strings.Repeat("x", 200) + `1"}`))
	to := ParseTree([]byte(`{"same": [1, {"x": 2}], "new": {}, "old": "b", "list": [1], "big": "` + strings.Repeat("x", 200) + `2"}`))
	var got []string
	for _, c := range ChangesOf(catalog.Differences(from, to)) {
		got = append(got, string(c.Sign)+" "+c.Name)
	}
	want := []string{"change big", "remove gone", "remove list[1]", "create new", "change old"}
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if d := ChangesOf(catalog.Differences(from, from)); len(d) > 0 {
		t.Errorf("a document differs from itself: %v", d)
	}
}
