package external

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"unicode/utf8"

	"loom/app/loom"
)

func TestDecode(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]message{
		`{"t":"log","msg":"a","level":"warn","stream":"stderr"}`: {kind: "log", text: "a", level: "warn", stream: "stderr"},
		` {"t":"progress","msg":"b","percent":150} `:             {kind: "progress", text: "b", percent: 100},
		`{"t":"progress","msg":"b","percent":"x"}`:               {kind: "progress", text: "b", percent: -1},
		`{"t":"secret","value":12345}`:                           {kind: "secret", text: "12345"},
		`{"t":"heartbeat","more":[1,{"a":null}]}`:                {kind: "heartbeat"},
		`{"t":"state"}`:                                             {kind: "state", wrong: "“result” has to be an object"},
		`{"t":"state","result":"x"}`:                                {kind: "state", wrong: "“result” has to be an object, not a text"},
		`{"t":"log","msg":{}}`:                                      {kind: "log", wrong: "“msg” has to be a text, not an object"},
		`{"t":"dance"}`:                                             {kind: "dance"},
		`{"t":"result","status":0,"retryable":"no"}`:                {kind: "result", wrong: "“retryable” has to be true or false, not a text"},
		`{"t":"result","status":1,"keep_machine":"yes"}`:            {kind: "result", wrong: "“keep_machine” has to be true or false, not a text"},
		`{"t":"result","status":1,"keep_machine":true}`:             {kind: "result", outcome: loom.TaskResult{Status: 1, KeepMachine: true}},
		`{"t":"result","status":0,"retry_after":-1}`:                {kind: "result", wrong: "“retry_after” has to be a number of seconds"},
		`{"t":"result","status":99999999999999999999}`:              {kind: "result", wrong: "“status” has to be a whole number, 0 for success"},
		`{"t":"result","status":" 7 ","message":"m\u0000","x":"y"}`: {kind: "result", outcome: loom.TaskResult{Status: 7, Message: "m"}},
	} {
		m, ok := decode([]byte(line))
		if !ok || m.kind != want.kind || m.text != want.text || m.level != want.level || m.stream != want.stream || m.percent != want.percent || m.wrong != want.wrong {
			t.Errorf("%s: %+v, %v", line, m, ok)
		}
		if want.wrong == "" && m.outcome.KeepMachine != want.outcome.KeepMachine {
			t.Errorf("%s: %+v", line, m.outcome)
		}
		if want.wrong == "" && (m.outcome.Status != want.outcome.Status || m.outcome.Message != want.outcome.Message) {
			t.Errorf("%s: %+v", line, m.outcome)
		}
	}
	deep := `{"t":"state","result":` + strings.Repeat("[", 10_000) + strings.Repeat("]", 10_000-5) // not even closed
	if m, ok := decode([]byte(deep + "]]]]]}")); ok {
		t.Errorf("what encoding/json refuses is a message: %+v", m)
	}
	deep = `{"t":"state","result":` + strings.Repeat("[", 100) + strings.Repeat("]", 100) + `}`
	if m, ok := decode([]byte(deep)); !ok || m.kind != "state" || m.facts != nil || !strings.Contains(m.wrong, "more than 100 levels deep") {
		t.Errorf("too deep: %+v, %v", m, ok)
	}
	for _, line := range []string{"", "{", "{}", "[]", "hello", `{"t":1}`, `{"t":""}`, `{"t":"log"} x`, `{"t":"log"}{}`, `"t"`, `{"t":"log","t":null}`} {
		if m, ok := decode([]byte(line)); ok {
			t.Errorf("%q is a message: %+v", line, m)
		}
	}
}

// FuzzDecode: whatever comes, what is used of it can be stored and is bounded.
func FuzzDecode(f *testing.F) {
	for _, seed := range []string{
		`{"t":"result","status":0,"result":{"providerid":"x","a":[{"b":"\u0000\ud800"}]},"ipaddresses":{"access_v4":"1.2.3.4"},"retry_after":1e3}`,
		`{"t":"state","result":{"a\u0000":1,"a":2}}`, `{"t":"log","msg":"\xff"}`, `{"t":"progress","percent":1e999}`, `{"t":"x","y":{"z":[[[[1e-999]]]]}}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		m, ok := decode(line)
		if !ok {
			return
		}
		if m.kind == "" && len(m.wrong) == 0 || !utf8.ValidString(m.kind+m.text+m.level+m.stream+m.phase+m.wrong) {
			t.Fatalf("%+v", m)
		}
		if m.wrong != "" {
			return
		}
		if m.percent > 100 || m.outcome.RetryAfter < 0 || m.outcome.RetryAfter > 86400 {
			t.Fatalf("out of bounds: %+v", m)
		}
		for _, value := range []any{m.facts, m.outcome} {
			data, err := json.Marshal(value)
			if err != nil {
				t.Fatalf("%+v cannot be stored: %v", value, err)
			}
			if bytes.Contains(data, []byte(`\u0000`)) && !bytes.Contains(data, []byte(`\\u0000`)) {
				t.Fatalf("a NUL is in %s", data)
			}
		}
		if id, there := m.facts["providerid"]; there && id != nil {
			if _, isText := id.(string); !isText {
				t.Fatalf("the providerid is %T", id)
			}
		}
	})
}

// FuzzLines: a stream in any pieces gives the lines of the whole.
func FuzzLines(f *testing.F) {
	f.Add([]byte("a\nb\n\nc"), uint8(1))
	f.Add(bytes.Repeat([]byte("x"), 200), uint8(7))
	f.Fuzz(func(t *testing.T, text []byte, size uint8) {
		r := newLineReader(iotest.OneByteReader(bytes.NewReader(text)))
		r.buffer = make([]byte, max(1, int(size)))
		if size%2 == 0 {
			r.from = bytes.NewReader(text)
		}
		var got []string
		for {
			line, dropped, err := r.next()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil || dropped != 0 {
				t.Fatalf("%v, %d dropped", err, dropped)
			}
			got = append(got, string(line))
		}
		want := strings.Split(string(text), "\n")
		if want[len(want)-1] == "" {
			want = want[:len(want)-1]
		}
		if !slices.Equal(got, want) {
			t.Fatalf("%q gives %q", text, got)
		}
	})
}

func TestLongLines(t *testing.T) {
	t.Parallel()
	r := newLineReader(strings.NewReader(strings.Repeat("x", MaxLine+10) + "\nnext"))
	line, dropped, err := r.next()
	if len(line) != MaxLine || dropped != 10 || err != nil {
		t.Errorf("%d bytes, %d dropped, %v", len(line), dropped, err)
	}
	if line, dropped, err = r.next(); string(line) != "next" || dropped != 0 || err != nil {
		t.Errorf("%q, %d dropped, %v", line, dropped, err)
	}
	for _, text := range []string{"", "short", strings.Repeat("ä", 20_000), "a" + strings.Repeat("€", 9000), strings.Repeat("\xff", 10_000)} {
		parts := pieces(text)
		if strings.Join(parts, "") != text {
			t.Errorf("%d bytes are not the sum of their pieces", len(text))
		}
		for _, part := range parts {
			if utf8.ValidString(text) && !utf8.ValidString(part) {
				t.Error("a character is split")
			}
		}
	}
}
