package cloud

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"loom/app/loom"
)

func answering(t *testing.T, text func(path string) string) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, text(r.URL.Path)) }))
	t.Cleanup(server.Close)
	return server.URL
}

func fetch(ctx context.Context, c *http.Client, address string) (string, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return "", err
	}
	answer, err := c.Do(r)
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	return string(text), err
}

// TestAnswersAreBounded: an answer that is too long, or of too many values, is refused
// before anybody builds anything of it, with the limit; what real clouds answer is read.
func TestAnswersAreBounded(t *testing.T) {
	t.Parallel()
	answers := map[string]struct{ text, says string }{
		"/none":      {"", ""},
		"/small":     {`{"a": 1}`, ""},
		"/text":      {`["` + strings.Repeat("[{, ", 1<<20) + `"]`, ""},
		"/longest":   {strings.Repeat(" ", answerLimit), ""},
		"/too long":  {strings.Repeat(" ", answerLimit+1), "8 MB"},
		"/most":      {"[" + strings.Repeat("1,", answerValues-1) + "1]", ""},
		"/objects":   {`{"catalog":[` + strings.Repeat(`{"endpoints":[{}]},`, answerValues/4) + `{}]}`, "200000 values"},
		"/small {}":  {"[" + strings.Repeat("{},", smallAnswer/3-1) + "1]", ""},
		"/elements":  {"<a>" + strings.Repeat("<item/>", answerValues) + "</a>", "200000 values"},
		"/disguised": {`{"<a>` + strings.Repeat("<item/>", answerValues) + "</a>", "200000 values"},
		"/attribute": {"<a" + strings.Repeat(` b=''`, answerValues) + "/>", "200000 values"},
		"/escaped":   {`["\"",` + strings.Repeat("[],", answerValues) + `1]`, "200000 values"},
	}
	server := answering(t, func(path string) string { return answers[path].text })
	s := Options{Insecure: true}.Begin(loom.PluginType{}, &loom.TaskSpec{Reach: loom.Anywhere()}, nil, FromNetwork)
	for path, c := range answers {
		got, err := fetch(t.Context(), s.Client(true), server+strings.ReplaceAll(path, " ", "%20"))
		if c.says == "" && (err != nil || got != c.text) || c.says != "" && (!Is(err, Refused) || !strings.Contains(err.Error(), c.says)) {
			t.Errorf("%s: %d bytes of %d, %v", path, len(got), len(c.text), err)
		}
	}
}

// TestPagesAreBounded: a list that has no end is refused, whatever its pages are; long
// lists of machines are read.
func TestPagesAreBounded(t *testing.T) {
	t.Parallel()
	server := answering(t, func(path string) string {
		if path == "/text" {
			return strings.Repeat(" ", answerLimit)
		}
		return "[" + strings.Repeat("{},", answerValues/4) + "1]"
	})
	s := Options{Insecure: true}.Begin(loom.PluginType{}, &loom.TaskSpec{Reach: loom.Anywhere()}, nil, FromNetwork)
	for _, c := range []struct {
		path  string
		kept  int // of each page; -1: all
		pages int
		says  string
	}{{"/values", -1, 3, "400000 values"}, {"/text", -1, 8, "64 MB"}, {"/values", 100, 12, ""}, {"/text", 100, 8, "64 MB"}, {"/values", 3000, 5, "400000 values"}} {
		pages := 0
		err := s.Call(t.Context(), func(ctx context.Context) error {
			for ; pages < 12; pages++ {
				if _, err := fetch(ctx, s.Client(true), server+c.path); err != nil {
					return err
				}
				if c.kept >= 0 {
					Kept(ctx, (pages+1)*c.kept)
				}
			}
			return nil
		})
		if pages != c.pages || (err == nil) != (c.says == "") || err != nil && (!Is(err, Refused) || !strings.Contains(err.Error(), c.says)) {
			t.Errorf("%+v: after %d pages: %v", c, pages, err)
		}
	}
}

// TestLongAnswersTakeTurns: as long as all places are taken, long answers wait, within
// their call, and short ones do not.
func TestLongAnswersTakeTurns(t *testing.T) {
	t.Parallel()
	server := answering(t, func(path string) string {
		return strings.Repeat(" ", map[string]int{"/long": 1 << 20, "/short": 100}[path])
	})
	one := make(chan struct{}, 1)
	client := &http.Client{Transport: bounded{http.DefaultTransport, one}}
	holder, forget := context.WithCancel(t.Context())
	defer forget()
	r, _ := http.NewRequestWithContext(holder, http.MethodGet, server+"/long", nil)
	held, err := client.Do(r)
	if err != nil || len(one) != 1 {
		t.Fatal(err)
	}
	ended, end := context.WithCancelCause(t.Context())
	why := errors.New("the task was aborted")
	waiting := make(chan error)
	go func() {
		_, err := fetch(ended, client, server+"/long")
		waiting <- err
	}()
	if text, err := fetch(t.Context(), client, server+"/short"); err != nil || len(text) != 100 {
		t.Errorf("a short answer: %d bytes, %v", len(text), err)
	}
	end(why)
	if err := <-waiting; !errors.Is(err, why) && !errors.Is(err, context.Canceled) {
		t.Errorf("a call that ended while it waited: %v", err)
	}
	if err := errors.Join(held.Body.Close(), held.Body.Close()); err != nil || len(one) != 0 {
		t.Errorf("%d places are taken, %v", len(one), err)
	}
	if text, err := fetch(t.Context(), client, server+"/long"); err != nil || len(text) != 1<<20 {
		t.Errorf("when a place is free: %d bytes, %v", len(text), err)
	}
	// A body that nobody closes gives its place back when its call ends.
	r, _ = http.NewRequestWithContext(holder, http.MethodGet, server+"/long", nil)
	if forgotten, err := client.Do(r); err != nil || forgotten == nil {
		t.Fatal(err)
	}
	forget()
	one <- struct{}{}
}

// BenchmarkHostileAnswers: what four answers at once cost that are full of objects.
func BenchmarkHostileAnswers(b *testing.B) {
	text := `{"catalog":[` + strings.Repeat(`{"endpoints":[{}]},`, answerValues/4-10) + `{}]}`
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		values([]byte(text))
		var got any
		if err := json.Unmarshal([]byte(text), &got); err != nil {
			b.Fatal(err)
		}
	}
}
