package health

import (
	"context"
	"crypto/sha256"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"loom/app/loom"
	"loom/provisioner/remote"
	"loom/provisioner/remote/sshtest"
)

func machine(t *testing.T) *remote.Conn {
	t.Helper()
	s := sshtest.Start(t, sshtest.Options{})
	conn, err := remote.Dial(t.Context(), remote.Target{Reach: loom.Anywhere(), Node: "node-1", Address: s.Address, Port: s.Port, User: s.User,
		Keys: []loom.Secret{loom.NewSecret(s.Key.PEM)}, HostKeys: s.HostKeys})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// TestLook: everything by one command on a real sshd, whatever checks print or leave behind.
func TestLook(t *testing.T) {
	t.Parallel()
	conn := machine(t)
	commands := []Command{
		{"fine", "echo all is well; echo value queue 7; exit 0", 5 * time.Second},
		{"broken", "echo; echo ' nobody listens on port 80'; echo more; exit 7", 5 * time.Second},
		{"quiet", "exit 1", 5 * time.Second},
		{"slow", "echo begins; sleep 60", time.Second},
		{"deaf", "trap '' TERM; while :; do sleep 1; done", time.Second},
		{"endless", "yes", time.Second},
		{"daemon", "setsid sleep 8 & exit 0", time.Second},
		{"binary", `printf 'a\000b\377c\033[31m'; exit 3`, 5 * time.Second},
		{"quotes", `[ "it's" = 'it'"'"'s' ] || exit 9; exit 0`, 5 * time.Second},
		{"reader", "read -r x && exit 5; exit 0", 5 * time.Second},
	}
	seen, err := Look(t.Context(), conn, commands, []string{"/etc/hostname", "/does/not/exist"})
	if err != nil {
		t.Fatal(err)
	}
	for service, want := range map[string]Result{
		"fine": {Passed: true}, "broken": {Message: "exit status 7: nobody listens on port 80"}, "quiet": {Message: "exit status 1"},
		"slow":   {Message: "no result within 1 s: begins"},
		"daemon": {Passed: true}, "binary": {Message: "exit status 3: ab\uFFFDc[31m"}, "quotes": {Passed: true}, "reader": {Passed: true},
	} {
		got := seen.Services[service]
		if got.Passed != want.Passed || got.Message != want.Message {
			t.Errorf("%s: %+v, want %+v", service, got, want)
		}
	}
	if deaf := seen.Services["deaf"]; deaf.Passed || !strings.HasPrefix(deaf.Message, "no result within 1 s") {
		t.Errorf("deaf to signals: %+v", deaf)
	}
	if endless := seen.Services["endless"]; endless.Passed || !strings.HasSuffix(endless.Message, ": y") {
		t.Errorf("endless output: %+v", endless)
	}
	if got := seen.Services["fine"].Values; len(got) != 1 || got["queue"] != 7 {
		t.Errorf("values: %v", got)
	}
	if len(seen.BootID) != 36 || seen.CPU < 0 || seen.Memory < 1 || seen.Disk < 0 {
		t.Errorf("the machine: %+v", seen)
	}
	if sum, there := seen.Files["/does/not/exist"]; !there || sum != "" {
		t.Errorf("a file that is not there: %q, %t", sum, there)
	}
	if len(seen.Files["/etc/hostname"]) != 64 {
		t.Errorf("files: %v", seen.Files)
	}
}

// TestSums: files of any name are summed; what is no file has no sum, and none keeps others.
func TestSums(t *testing.T) {
	t.Parallel()
	conn := machine(t)
	dir := t.TempDir()
	write := func(name, content string) string {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
		return path
	}
	sum := func(content string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(content))) }
	plain, quoted, blank := write("plain", "one\n"), write("it's a \"$(name)\" \\ of `sorts`", "two"), write("-n  ", "")
	pipe := filepath.Join(dir, "pipe")
	if err := syscall.Mkfifo(pipe, 0o644); err != nil {
		t.Fatal(err)
	}
	dangling := filepath.Join(dir, "dangling")
	if err := os.Symlink("/does/not/exist", dangling); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{plain: sum("one\n"), quoted: sum("two"), blank: sum(""), pipe: "", dangling: "", dir: "", "/does/not/exist": ""}
	files := append(slices.Sorted(maps.Keys(want)), plain)
	seen, err := Look(t.Context(), conn, []Command{{"after", "exit 0", time.Second}}, files)
	if err != nil {
		t.Fatal(err)
	}
	if !maps.Equal(seen.Files, want) || !seen.Services["after"].Passed || seen.BootID == "" {
		t.Errorf("%+v, want %v", seen, want)
	}
	// More paths than fit are not summed, and cost nothing else.
	long := strings.Repeat("/"+strings.Repeat("x", 99), 40)
	files = []string{plain}
	for i := range 40 {
		files = append(files, fmt.Sprint(long, i))
	}
	if seen, err = Look(t.Context(), conn, []Command{{"after", "exit 0", time.Second}}, files); err != nil {
		t.Fatal(err)
	}
	if n := len(seen.Files); seen.Files[plain] != sum("one\n") || n < 2 || n > 13 || !seen.Services["after"].Passed {
		t.Errorf("of 41 long paths %d were summed: %+v", n, seen.Services)
	}
}

// TestSumsForged: what a machine says of its files is a sum, that there is no file, or
// nothing.
func TestSumsForged(t *testing.T) {
	t.Parallel()
	mark := "loom-000000000000000000000000"
	sum := strings.Repeat("0af", 21) + "9"
	for name, c := range map[string]struct{ output, want string }{
		"a sum":            {"\n" + mark + " file 0\n" + sum + "  -\n", sum},
		"no file":          {"\n" + mark + " file 0\nnone\n", ""},
		"twice":            {"\n" + mark + " file 0\n" + sum + "\n\n" + mark + " file 0\nnone\n", sum},
		"nothing":          {"", "?"},
		"no output":        {"\n" + mark + " file 0\n", "?"},
		"another file":     {"\n" + mark + " file 1\n" + sum + "\n", "?"},
		"another mark":     {"\nloom-1 file 0\n" + sum + "\n", "?"},
		"too short":        {"\n" + mark + " file 0\n" + sum[1:] + "\n", "?"},
		"too long":         {"\n" + mark + " file 0\n" + sum + "0\n", "?"},
		"capitals":         {"\n" + mark + " file 0\n" + strings.ToUpper(sum) + "\n", "?"},
		"huge":             {"\n" + mark + " file 0\n" + strings.Repeat("a", 1<<20), "?"},
		"no text":          {"\n" + mark + " file 0\n\xff\x00" + sum[2:] + "\n", "?"},
		"within a check":   {"\n" + mark + " check 0\n" + sum + "\n", "?"},
		"an error instead": {"\n" + mark + " file 0\nsha256sum: not found\n", "?"},
	} {
		seen := parse(mark, c.output, nil, []string{"/a"})
		got, known := seen.Files["/a"]
		if !known {
			got = "?"
		}
		if got != c.want || len(seen.Files) > 1 {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// TestLookForged: a check cannot speak for another one without knowing the mark, and what a
// machine leaves out is unknown.
func TestLookForged(t *testing.T) {
	t.Parallel()
	commands := []Command{{"a", "", time.Second}, {"b", "", time.Second}}
	mark := "loom-000000000000000000000000"
	for name, output := range map[string]string{
		"nothing":            "",
		"another mark":       "\nloom-1 check 0\n\nloom-1 status 0 0\n\nloom-1 status 1 0\n",
		"only output":        "\n" + mark + " check 0\nfine\n",
		"no status":          "\n" + mark + " status 0 \n\n" + mark + " status 1 zero\n",
		"statuses of others": "\n" + mark + " status 7 0\n",
		"in a line":          "x " + mark + " status 0 0\n",
	} {
		seen := parse(mark, output, commands, []string{"/a"})
		if seen.Services["a"].Passed || seen.Services["b"].Passed || len(seen.Services) != 2 {
			t.Errorf("%s: %+v", name, seen.Services)
		}
		if seen.CPU != -1 || seen.Memory != -1 || seen.Disk != -1 || seen.BootID != "" || len(seen.Files) != 0 {
			t.Errorf("%s: %+v", name, seen)
		}
	}
	if twice := parse(mark, "\n"+mark+" status 0 1\n\n"+mark+" status 0 0\n", commands[:1], nil); twice.Services["a"].Passed {
		t.Errorf("of two statuses the second one counts: %+v", twice)
	}
}

// FuzzParse: any output is read without a panic, and within bounds.
func FuzzParse(f *testing.F) {
	mark := "loom-000000000000000000000000"
	f.Add("\n" + mark + " boot\n0d8c3f5e-0000-4000-8000-000000000000\n\n" + mark + " load\n0.5\n2\n\n" + mark + " check 0\nvalue a 1\n\n" + mark + " status 0 0\n")
	f.Fuzz(func(t *testing.T, output string) {
		seen := parse(mark, output, []Command{{"a", "", time.Second}}, []string{"/a"})
		for _, share := range []int{seen.CPU, seen.Memory, seen.Disk} {
			if share < -1 || share > 100 {
				t.Fatalf("a share of %d", share)
			}
		}
		r := seen.Services["a"]
		if len(r.Message) > maxMessage || len(r.Values) > MaxValues || len(seen.Services) != 1 || len(seen.Files) > 1 {
			t.Fatalf("out of bounds: %+v", seen)
		}
	})
}

func TestLookEndsWithItsContext(t *testing.T) {
	t.Parallel()
	conn := machine(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Look(ctx, conn, nil, nil); err == nil {
		t.Error("a look whose context has ended gave no error")
	}
}
