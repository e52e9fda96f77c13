package cli

import (
	"strings"
	"testing"
	"time"
)

func TestPickedPages(t *testing.T) {
	t.Parallel()
	scale := fullScale
	rest, err := scale.pick([]string{"--pages", "usage,its n,q 77", "--seconds=7", "3"})
	if err != nil || len(rest) != 1 || scale.while != 7*time.Second || len(fullScale.picked) > 0 {
		t.Fatalf("%v, %v, %+v", rest, err, scale)
	}
	var names []string
	for _, p := range append(scale.pickedOf(pagesOf(1, "n", 1080, 14040)), scale.pickedOf(filtersOf())...) {
		names = append(names, p.name)
	}
	if got := strings.Join(names, ", "); got != "its nodes, usage, q 77" || scale.wants(livePages) {
		t.Errorf("picked %s, live pages %v", got, scale.wants(livePages))
	}
	if all := fullScale; len(all.pickedOf(filtersOf())) != len(filtersOf()) || !all.wants(livePages) {
		t.Error("without a choice something is left out")
	}
	for _, wrong := range [][]string{{"--pages", ""}, {"--pages", "home,nowhere at all"}, {"--seconds", "0"}, {"--seconds", "many"}} {
		if _, err := scale.pick(wrong); err == nil {
			t.Errorf("%q is taken", wrong)
		}
	}
}
