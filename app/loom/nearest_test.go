package loom

import "testing"

func TestNearest(t *testing.T) {
	t.Parallel()
	known := []string{"mode", "dryRun", "clustertemplates", "services"}
	for word, want := range map[string]string{
		"Mode": "mode", "dryrun": "dryRun", "dry_run": "dryRun", "clustertemplate": "clustertemplates", "service": "services",
		"colour": "", "": "", "x": "", "mo": "", "templates": "",
	} {
		if got := Nearest(word, known); got != want {
			t.Errorf("%q is near %q, want %q", word, got, want)
		}
	}
}

func TestEditDistance(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		from, to    string
		limit, want int
	}{
		{"", "", 9, 0}, {"", "abc", 9, 3}, {"abc", "abc", 9, 0}, {"abc", "abd", 9, 1}, {"abc", "ac", 9, 1}, {"abc", "acb", 9, 1},
		{"kitten", "sitting", 9, 3}, {"größe", "grösse", 9, 2}, {"ab", "ba", 9, 1}, {"abcdef", "a", 2, 2},
	} {
		if got := EditDistance(test.from, test.to, test.limit); got != test.want {
			t.Errorf("%q to %q: %d, want %d", test.from, test.to, got, test.want)
		}
	}
}

func TestAndOr(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		names   []string
		and, or string
	}{
		{nil, "", ""}, {[]string{"a"}, "a", "a"}, {[]string{"a", "b"}, "a and b", "a or b"}, {[]string{"a", "b", "c"}, "a, b and c", "a, b or c"},
	} {
		if and, or := And(test.names), Or(test.names); and != test.and || or != test.or {
			t.Errorf("%v: %q, %q", test.names, and, or)
		}
	}
}
