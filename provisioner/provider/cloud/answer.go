package cloud

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
)

// What a cloud answers becomes objects that take far more memory than its text, so
// the values are counted before anybody builds them.
const (
	// answerLimit is the most that is read of an answer, in bytes. Pages of real clouds
	// (500 or 1000 machines) are half as long.
	answerLimit = 8 << 20
	// answerValues is the most values that an answer may have.
	answerValues = 200_000
	// questionValues and questionLimit are the most that the answers to one question may
	// have together, such as the pages of a list.
	questionValues = 2 * answerValues
	questionLimit  = 64 << 20
	// machineValues is what a machine that is kept of a page counts for.
	machineValues = 20
	// smallAnswer is how much of each answer is read at once. Longer ones take turns.
	smallAnswer = 256 << 10
)

// longAnswers are the places for answers of more than smallAnswer that are read or
// decoded at the same moment, by all sessions of the process: 32 MB.
var longAnswers = make(chan struct{}, (32<<20)/answerLimit)

type questionKey struct{}

// question counts its answers' values and bytes.
type question struct{ values, bytes atomic.Int64 }

// asking returns a context for one question: the calls with it count their answers
// together.
func asking(ctx context.Context) context.Context {
	return context.WithValue(ctx, questionKey{}, &question{})
}

// Kept says how many machines are kept of all pages so far of a list, and nothing else
// of them: long lists of machines are no attack.
func Kept(ctx context.Context, machines int) {
	if q, ok := ctx.Value(questionKey{}).(*question); ok {
		q.values.Store(int64(machines) * machineValues)
	}
}

// bounded reads answers whole, within the limits.
type bounded struct {
	http.RoundTripper
	long chan struct{}
}

// RoundTrip returns an answer that has been read. One that is too long, or of too many
// values, is an *Error of kind Refused.
func (b bounded) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := b.RoundTripper.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	body, err := b.read(r, response.Body)
	_ = response.Body.Close()
	if err != nil {
		return nil, err
	}
	response.Body = body
	return response, nil
}

func (b bounded) read(r *http.Request, from io.Reader) (io.ReadCloser, error) {
	ctx := r.Context()
	var text bytes.Buffer
	if _, err := io.CopyN(&text, from, smallAnswer); err == io.EOF { //nolint:errorlint // as CopyN promises
		return &readBody{Reader: &text}, countValues(r, text.Bytes())
	} else if err != nil {
		return nil, err
	}
	select {
	case b.long <- struct{}{}:
	case <-ctx.Done():
		return nil, fmt.Errorf("wait for other long answers: %w", context.Cause(ctx))
	}
	leave := sync.OnceFunc(func() { <-b.long })
	_, err := io.CopyN(&text, from, answerLimit+1-smallAnswer)
	switch {
	case err == nil:
		err = refuseAnswer(r, fmt.Sprintf("is longer than %d MB", answerLimit>>20))
	case err == io.EOF: //nolint:errorlint // as CopyN promises
		err = countValues(r, text.Bytes())
	}
	if err != nil {
		leave()
		return nil, err
	}
	// Whoever forgets to close the body holds the place until his call ends.
	forgotten := context.AfterFunc(ctx, leave)
	return &readBody{Reader: &text, leave: func() { forgotten(); leave() }}, nil
}

// readBody is a body in memory. Reading on after Close finds nothing.
type readBody struct {
	io.Reader
	leave func()
}

// Close lets the text go, and the next long answer in.
func (b *readBody) Close() error {
	b.Reader = http.NoBody
	if b.leave != nil {
		b.leave()
	}
	return nil
}

// countValues refuses an answer with too many, or one too many to its question.
func countValues(r *http.Request, text []byte) error {
	n := int64(values(text))
	if n > answerValues {
		return refuseAnswer(r, fmt.Sprintf("has more than %d values", answerValues))
	}
	q, ok := r.Context().Value(questionKey{}).(*question)
	switch {
	case !ok:
	case q.values.Add(n) > questionValues:
		return refuseAnswer(r, fmt.Sprintf("has, together with its earlier pages, more than %d values", questionValues))
	case q.bytes.Add(int64(len(text))) > questionLimit:
		return refuseAnswer(r, fmt.Sprintf("is, together with its earlier pages, longer than %d MB", questionLimit>>20))
	}
	return nil
}

func refuseAnswer(r *http.Request, why string) error {
	return Errorf(Refused, "the answer of %s %s, which Loom does not read; check that the provider's address is that of its API", r.URL.Host, why)
}

// values counts, without building any, about as many values as an answer has: of JSON
// its arrays, objects and commas, of XML its elements and attributes.
func values(text []byte) int {
	n := bytes.Count(text, []byte("<")) - bytes.Count(text, []byte("</")) + bytes.Count(text, []byte("="))
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '"':
			for i++; i < len(text) && text[i] != '"'; i++ {
				if text[i] == '\\' {
					i++
				}
			}
		case '[', '{', ',':
			n++
		}
	}
	return n
}
