package provisioner

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/bits"
	"math/rand/v2"
	"net/url"
	"slices"
	"strings"
	"testing"

	"loom/app/loom"
	"loom/provisioner/remote"
	"loom/provisioner/remote/sshtest"
)

func TestRedactorForms(t *testing.T) {
	t.Parallel()
	secret := "p&ss w\"rd/+é's"
	quoted, _ := json.Marshal(secret)
	key := "-----BEGIN KEY-----\nAAAAB3NzaC1lZDI1\r\nZZZZ9999\n-----END KEY-----\n"
	r := NewRedactor(secret, key, "abc", "")
	for name, text := range map[string]string{
		"plain":     secret,
		"base64":    base64.StdEncoding.EncodeToString([]byte(secret)),
		"query":     url.QueryEscape(secret),
		"path":      url.PathEscape(secret),
		"json":      string(quoted[1 : len(quoted)-1]),
		"shell":     strings.ReplaceAll(secret, "'", `'\''`),
		"key line":  "AAAAB3NzaC1lZDI1",
		"last line": "ZZZZ9999",
		"whole key": key,
	} {
		if got := r.Text("<" + text + ">"); !strings.HasPrefix(got, "<"+loom.Redacted) || !strings.HasSuffix(got, ">") || strings.Contains(got, text) {
			t.Errorf("%s: %q", name, got)
		}
	}
	if got := r.Text("abc is too short"); got != "abc is too short" {
		t.Errorf("short value: %q", got)
	}
	if got := NewRedactor("abcdef", "defghi").Text("xabcdefghiy"); got != "x"+loom.Redacted+"y" {
		t.Errorf("overlap: %q", got)
	}
	if got := NewRedactor("one1", "two2").Text("one1two2 one1"); got != loom.Redacted+loom.Redacted+" "+loom.Redacted {
		t.Errorf("neighbours: %q", got)
	}
}

// TestRedactorAmidBase64: a secret inside of a document that was encoded as a whole is hidden, wherever it lies.
func TestRedactorAmidBase64(t *testing.T) {
	t.Parallel()
	const secret = "k3ystone>pa55?word"
	r := NewRedactor(secret)
	for _, encoding := range []*base64.Encoding{base64.StdEncoding, base64.URLEncoding} {
		for before := range 7 {
			text := r.Text(encoding.EncodeToString([]byte(strings.Repeat("{", before) + secret + "\"}")))
			begin, rest, found := strings.Cut(text, loom.Redacted)
			left, _ := base64.RawStdEncoding.DecodeString(begin + strings.TrimRight(rest, "="))
			if !found || len(begin) > before*8/6+1 || len(rest) > 6 || strings.Contains(string(left), "pa55") {
				t.Errorf("after %d bytes: %q", before, text)
			}
		}
	}
}

// TestShortSecretsOfConfigsAreShown: whoever writes a config does not blank the log of his tasks, whose
// administrator has to read it.
func TestShortSecretsOfConfigsAreShown(t *testing.T) {
	t.Parallel()
	spec := createSpec()
	spec.Config = map[string]any{"token": []any{"mock: ", "line", "install", "mock: \nline\noutput\n", "long enough"}}
	spec.Provider.Fields["ssh_password"] = "s3cr"
	got := NewRedactor(sensitive(spec)...).Text("mock: line 1 of install, output, long enough, s3cr")
	if got != "mock: line 1 of install, output, "+loom.Redacted+", "+loom.Redacted {
		t.Error(got)
	}
}

// TestSecretsOfAConfigAreBounded: a config of 85,000 secrets, stored before there was a limit, makes a redactor
// of the first ones.
func TestSecretsOfAConfigAreBounded(t *testing.T) {
	t.Parallel()
	spec := createSpec()
	spec.Config = map[string]any{"token": manySecrets(85_000)}
	r := NewRedactor(sensitive(spec)...)
	size := 0
	for _, f := range r.forms {
		size += len(f.text)
	}
	if len(r.forms) > 20_000 || size > 2<<20 {
		t.Errorf("%d forms, %d bytes", len(r.forms), size)
	}
	if got := r.Text("<'00007> "); strings.Contains(got, "00007") {
		t.Error(got)
	}
}

func manySecrets(n int) []any {
	all := make([]any, n)
	for i := range all {
		all[i] = fmt.Sprintf("<'%05d> ", i)
	}
	return all
}

// BenchmarkRedactor hides 350 secrets that begin alike in a megabyte that does too.
func BenchmarkRedactor(b *testing.B) {
	secrets := make([]string, 350)
	for i := range secrets {
		secrets[i] = strings.Repeat("a", i+8) + "b"[:i%2]
	}
	for name, line := range map[string]string{"alike": strings.Repeat("a", 1<<20), "chains": strings.Repeat(strings.Repeat("a", 9)+"c", 100_000), "unlike": strings.Repeat("an ordinary line of a log\n", 40_000)} {
		r := NewRedactor(secrets...)
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(line)))
			for b.Loop() {
				_ = r.Text(line)
			}
		})
	}
}

// checkChunks plants secrets in noise and cuts the text at random places.
func checkChunks(t *testing.T, secrets []string, text string, seed uint64) {
	t.Helper()
	r := NewRedactor(secrets...)
	random := rand.New(rand.NewPCG(seed, 1))
	stream := r.Stream()
	var out strings.Builder
	for rest := text; rest != ""; {
		n := 1 + random.IntN(min(len(rest), 20))
		out.WriteString(stream.Write(rest[:n]))
		rest = rest[n:]
	}
	out.WriteString(stream.Flush())
	if whole := r.Text(text); whole != out.String() {
		t.Fatalf("pieces give %q, the whole gives %q", out.String(), whole)
	}
	// The mark itself may hold a very short secret such as "reda".
	bare := strings.ReplaceAll(out.String(), loom.Redacted, "\x00")
	for _, secret := range secrets {
		if len(secret) >= minSecret && strings.TrimSpace(secret) != "" && !strings.Contains(secret, "\x00") && strings.Contains(bare, secret) {
			t.Fatalf("secret %q survived in %q (text %q)", secret, out.String(), text)
		}
	}
}

func TestRedactorChunks(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(7, 7))
	word := func(n int) string { // a small alphabet makes overlaps likely
		b := make([]byte, n)
		for i := range b {
			b[i] = "ab'\n"[random.IntN(4)]
		}
		return string(b)
	}
	for i := range 3000 {
		secrets := []string{word(4 + random.IntN(3)), word(4 + random.IntN(9)), word(1 + random.IntN(30))}
		var text strings.Builder
		for range 6 {
			text.WriteString(word(random.IntN(12)))
			text.WriteString(secrets[random.IntN(3)])
		}
		checkChunks(t, secrets, text.String(), uint64(i))
	}
}

func FuzzRedactor(f *testing.F) {
	f.Add("hunter2!", "abcd", "x hunter2!abcdabcd", uint64(1))
	f.Fuzz(func(t *testing.T, a, b, text string, seed uint64) {
		checkChunks(t, []string{a, b}, text+a+b+a, seed)
	})
}

func TestRedactingSinkAcrossSplitLines(t *testing.T) {
	t.Parallel()
	next := &sshtest.Record{}
	r := NewRedactor("correct horse battery")
	sink := r.Sink(next)
	sink.Log("stdout", strings.Repeat("x", remote.MaxLine-7)+"correct")
	sink.Log("stderr", "in between")
	sink.Log("stdout", " horse battery staple")
	sink.Log("stdout", "")
	sink.Log("stdout", strings.Repeat("y", remote.MaxLine))
	if err := sink.Fact(map[string]any{"ssh-auth": map[string]any{"password": "s3cret-of-cloud"}}); err != nil {
		t.Fatal(err)
	}
	sink.Log("loom", "got s3cret-of-cloud")
	sink.Flush()
	text := next.Text()
	if strings.Contains(text, "horse") || strings.Contains(text, "s3cret") || !strings.Contains(text, loom.Redacted+" staple") || strings.Count(text, "y") != remote.MaxLine {
		t.Fatal(text)
	}
	if next.Facts()[0]["ssh-auth"].(map[string]any)["password"] != "s3cret-of-cloud" {
		t.Fatal("facts must pass unchanged")
	}
}

// TestChainsOfSecrets: secrets that begin with each other cost few steps, however many.
func TestChainsOfSecrets(t *testing.T) {
	t.Parallel()
	const secrets = 350
	values := make([]string, secrets)
	for i := range values {
		values[i] = strings.Repeat("a", 8+i)
	}
	r := NewRedactor(values...)
	last := slices.IndexFunc(r.forms, func(f form) bool { return f.text == values[secrets-1] })
	if deep := r.forms[last].deep; deep != secrets-1 {
		t.Fatalf("%d are in each other", deep)
	}
	for length := range 8 + secrets {
		at, steps := r.holds(last, length)
		want := 0
		if length >= 8 {
			want = length
		}
		if at < 0 && want > 0 || at >= 0 && len(r.forms[at].text) != want {
			t.Fatalf("%d bytes: got %d", length, at)
		}
		if steps > 3*bits.Len(secrets) {
			t.Errorf("%d bytes: %d steps", length, steps)
		}
	}
	for _, n := range []int{4, 7, 8, 100, 357, 400} {
		want := "x" + loom.Redacted + "b"
		if n < 8 {
			want = "x" + strings.Repeat("a", n) + "b"
		}
		if got := r.Text("x" + strings.Repeat("a", n) + "b"); got != want {
			t.Errorf("%d: %s", n, got)
		}
	}
}
