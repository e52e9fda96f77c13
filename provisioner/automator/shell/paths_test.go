package shell

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func TestFlatten(t *testing.T) {
	t.Parallel()
	got, err := flatten([]byte(`{"b":{"x":1.50,"y":[true,null,{"z":"a\tb\nc\\d"}]},"a":"","e":{},"l":[],"k\ty":12345678901234567890}`))
	want := "/a\tstring\t\n/b/x\tnumber\t1.50\n/b/y/0\tboolean\ttrue\n/b/y/1\tnull\tnull\n/b/y/2/z\tstring\ta\\tb\\nc\\\\d\n/k\\ty\tnumber\t12345678901234567890\n"
	if err != nil || string(got) != want {
		t.Fatalf("got\n%s\nwant\n%s\n%v", got, want, err)
	}
	if _, err := flatten([]byte("{")); err == nil {
		t.Fatal("half a document passed")
	}
}

// lookup runs the function in a real dash.
func lookup(t testing.TB, paths string, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	var out, errs bytes.Buffer
	command := exec.Command("dash", "-c", `set -u; . lib/functions.sh; loom_lookup_key "$@"`, "dash")
	command.Args = append(command.Args, args...)
	command.Env = append(os.Environ(), "LOOM_TASK_PATHS="+paths)
	command.Stdout, command.Stderr = &out, &errs
	if err := command.Run(); err != nil && command.ProcessState == nil {
		if os.Getenv("LOOM_TEST_REQUIRE") == "1" {
			t.Fatal(err)
		}
		t.Skip("dash is not installed")
	}
	return out.String(), errs.String(), command.ProcessState.ExitCode()
}

func TestLookupInDash(t *testing.T) {
	t.Parallel()
	document, err := json.Marshal(map[string]any{
		"taskName": "START",
		"config": map[string]any{
			"hostname": "a.example", "automators": []string{"chef-solo", "shell"}, "single": []string{"one two"},
			"nodes": map[string]any{"n1": map[string]any{"hostname": "a.example"}, "n2": map[string]any{"hostname": "b.example"}},
			"words": []string{"plain", "two words", `q"q`}, "text": "tab\there\nnew \\ back", "zero": 0, "off": false, "nothing": nil, "empty": "",
			"deep": []any{[]any{"x"}, []any{"y"}},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	flat, err := flatten(document)
	if err != nil {
		t.Fatal(err)
	}
	paths := filepath.Join(t.TempDir(), "t.paths")
	if err := os.WriteFile(paths, flat, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args, out, err string // arguments are parted by |>
		code           int
	}{
		{"^/taskName", "START\n", "", 0},
		{"config/automators", "chef-solo shell\n", "", 0},
		{"config/automators/", "chef-solo shell\n", "", 0},
		{"config/automators/1", "shell\n", "", 0},
		{"config/words", "plain \"two words\" q\"q\n", "", 0},
		{"config/single", "one two\n", "", 0},
		{"^/config/hostname$", "a.example\n", "", 0},
		{"n[2]/hostname$", "b.example\n", "", 0},
		{"hostname$", "", "non-unique key, multiple matches found", 1},
		{"config/deep", "", "non-unique key", 1},
		{"automators|words", "", "non-unique key", 1},
		{"[01]$", "", "non-unique key", 1},
		{"config/text", "tab\there\nnew \\ back\n", "", 0},
		{"config/zero", "0\n", "", 0},
		{"config/off", "false\n", "", 0},
		{"config/nothing", "null\n", "", 0},
		{"config/empty", "\n", "", 0},
		{"no/such", "", "key not found", 1},
		{"", "", "usage", 1},
		{"no/such|>8080", "8080\n", "", 0},
		{"no/such|>", "\n", "", 0},
		{`no/such|>a\nb "c" $d`, `a\nb "c" $d` + "\n", "", 0},
		{"config/zero|>8080", "0\n", "", 0},
		{"config/empty|>8080", "\n", "", 0},
		{"hostname$|>a", "", "non-unique key", 1},
		{"|>8080", "", "usage", 1},
		{"a|>b|>c", "", "usage", 1},
	} {
		out, errs, code := lookup(t, paths, strings.Split(c.args, "|>")...)
		if out != c.out || code != c.code || !strings.Contains(errs, c.err) || c.err == "" && errs != "" {
			t.Errorf("%q: %q, %q, %d", c.args, out, errs, code)
		}
	}
}

// FuzzFlatten: whatever a value is, the function in dash gives it back.
func FuzzFlatten(f *testing.F) {
	f.Add("plain")
	f.Add("a\\nb\\\\n\t\r\n\"'$x`")
	f.Fuzz(func(t *testing.T, value string) {
		document, err := json.Marshal(map[string]any{"k": value, "other": "x"})
		if err != nil {
			t.Skip()
		}
		var back map[string]string
		if err := json.Unmarshal(document, &back); err != nil {
			t.Fatal(err)
		}
		flat, err := flatten(document)
		if err != nil {
			t.Fatal(err)
		}
		paths := filepath.Join(t.TempDir(), "t.paths")
		if err := os.WriteFile(paths, flat, 0o600); err != nil {
			t.Fatal(err)
		}
		want := strings.ReplaceAll(back["k"], "\x00", "") + "\n"
		if out, errs, code := lookup(t, paths, "^/k$"); code != 0 || out != want {
			t.Fatalf("%q came back as %q (%s)", want, out, errs)
		}
	})
}

// TestQuote: a word comes back as it was, whatever is in it.
func TestQuote(t *testing.T) {
	t.Parallel()
	for _, word := range []string{"", "plain", "it's", "''", "a b\nc", `$HOME \ "x" *`} {
		out, err := exec.Command("dash", "-c", `. lib/functions.sh; eval "printf %s $(loom_quote "$1")"`, "dash", word).CombinedOutput()
		if err != nil || string(out) != word {
			t.Errorf("%q came back as %q, %v", word, out, err)
		}
	}
	for _, wrong := range []string{"loom_enable_at_boot", "loom_enable_at_boot 'a b' true", "loom_disable_at_boot ../x"} {
		if out, err := exec.Command("dash", "-c", "set -u; . lib/functions.sh; "+wrong).CombinedOutput(); err == nil || !strings.Contains(string(out), "usage") {
			t.Errorf("%s: %s, %v", wrong, out, err)
		}
	}
}
