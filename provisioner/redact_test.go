package provisioner

import (
	"encoding/base64"
	"encoding/json"
	"math/rand/v2"
	"net/url"
	"strings"
	"testing"

	"loom/provisioner/remote"
	"loom/provisioner/remote/sshtest"
)

func TestRedactorForms(t *testing.T) {
	t.Parallel()
	secret := "p&ss w\"rd/+é's"
	quoted, _ := json.Marshal(secret)
	key := "-----BEGIN KEY-----\nAAAAB3NzaC1lZDI1\r\nZZZZ9\n-----END KEY-----\n"
	r := NewRedactor(secret, key, "abc", "")
	for name, text := range map[string]string{
		"plain":     secret,
		"base64":    base64.StdEncoding.EncodeToString([]byte(secret)),
		"query":     url.QueryEscape(secret),
		"path":      url.PathEscape(secret),
		"json":      string(quoted[1 : len(quoted)-1]),
		"shell":     strings.ReplaceAll(secret, "'", `'\''`),
		"key line":  "AAAAB3NzaC1lZDI1",
		"last line": "ZZZZ9",
		"whole key": key,
	} {
		if got := r.Text("<" + text + ">"); !strings.HasPrefix(got, "<"+Redacted) || !strings.HasSuffix(got, ">") || strings.Contains(got, text) {
			t.Errorf("%s: %q", name, got)
		}
	}
	if got := r.Text("abc is too short"); got != "abc is too short" {
		t.Errorf("short value: %q", got)
	}
	if got := NewRedactor("abcdef", "defghi").Text("xabcdefghiy"); got != "x"+Redacted+"y" {
		t.Errorf("overlap: %q", got)
	}
	if got := NewRedactor("one1", "two2").Text("one1two2 one1"); got != Redacted+Redacted+" "+Redacted {
		t.Errorf("neighbours: %q", got)
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
	bare := strings.ReplaceAll(out.String(), Redacted, "\x00")
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
	if strings.Contains(text, "horse") || strings.Contains(text, "s3cret") || !strings.Contains(text, Redacted+" staple") || strings.Count(text, "y") != remote.MaxLine {
		t.Fatal(text)
	}
	if next.Facts()[0]["ssh-auth"].(map[string]any)["password"] != "s3cret-of-cloud" {
		t.Fatal("facts must pass unchanged")
	}
}
