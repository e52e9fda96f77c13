package macro

import (
	"slices"
	"testing"
)

func TestMentions(t *testing.T) {
	t.Parallel()
	config := map[string]any{
		"a": "%host.service.db% and %ip.access_v4.service.web[0]%, 50 %% of %cluster.owner%",
		"b": map[string]any{"c/d": []any{"plain", "%join(map(host.service.kv,'$:1'),',')%"}, "e": 5},
		"f": "%host.self% %num.service.web% %nonsense.of.db% %instance.self.service.me% %ip.self%",
	}
	want := []Mention{
		{"/a", "%host.service.db%", "db", "", -1, false}, {"/a", "%ip.access_v4.service.web[0]%", "web", "access_v4", 0, false}, {"/a", "%cluster.owner%", "", "", -1, false},
		{"/b/c~1d/1", "%join(map(host.service.kv,'$:1'),',')%", "kv", "", -1, false},
		{"/f", "%host.self%", "", "", -1, true}, {"/f", "%num.service.web%", "web", "", -1, false}, {"/f", "%instance.self.service.me%", "me", "", -1, true},
		{"/f", "%ip.self%", "", "bind_v4", -1, true},
	}
	if got := Mentions(config); !slices.Equal(got, want) {
		t.Errorf("mentions %v, want %v", got, want)
	}
	if got := Mentions(nil); got != nil {
		t.Errorf("nothing mentions %v", got)
	}
}

func TestLacks(t *testing.T) {
	t.Parallel()
	f := lab()
	for text, want := range map[string]bool{
		"http://%ip.access_v4.service.none[0]%/": true, "http://x/%join(host.service.none,'+')%": true, "http://%host.self%/%instance.self.service.none%": true,
		"http://%ip.access_v4.service.api[1]%/": false, "http://%ip.access_v4.service.api[99]%/": false, "http://%host.self%/%instance.self.service.api%": false,
		"http://x/%num.service.none%": false, "http://%host.self%/": false, "http://x/?q=100%%": false, "http://%oops%/": false, "": false,
	} {
		if got := f.Lacks(text); got != want {
			t.Errorf("%q: %v", text, got)
		}
	}
}
