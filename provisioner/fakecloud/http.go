package fakecloud

import (
	"bytes"
	"io"
	"net/http"
	"time"
)

// Dialect is how a cloud is spoken to.
type Dialect interface {
	// Attach tells the Dialect its Cloud, before the first call.
	Attach(c *Cloud)
	// Operation names a call, "" for none that it knows.
	Operation(r *Request) string
	// Allowed checks the credentials; an Answer other than nil refuses the call.
	Allowed(r *Request) *Answer
	// Do carries a call out.
	Do(op string, r *Request) Answer
	// Refuse is an answer with a status; code and message may be empty.
	Refuse(status int, code, message string) Answer
}

// Request is a call with its body read.
type Request struct {
	*http.Request
	Body []byte
}

// Answer is what a call gets.
type Answer struct {
	Status int
	// Type of the body.
	Type   string
	Body   []byte
	Header map[string]string
}

// strike finds the fault of a call and spends it.
func (c *Cloud) strike(op string) Fault {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, f := range c.faults {
		if f.Op != "" && f.Op != op {
			continue
		}
		given := *f
		if f.Times > 0 {
			if f.Times--; f.Times == 0 {
				c.faults = append(c.faults[:i:i], c.faults[i+1:]...)
			}
		}
		return given
	}
	return Fault{}
}

// Pending returns the faults that have not struck as often as they should, those
// without an end left out.
func (c *Cloud) Pending() (left []Fault) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, f := range c.faults {
		if f.Times > 0 {
			left = append(left, *f)
		}
	}
	return left
}

// ServeHTTP answers one call.
func (c *Cloud) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.serving.Add(1)
	defer c.serving.Done()
	c.mu.Lock()
	if c.inFlight++; c.inFlight > c.most {
		c.most = c.inFlight
	}
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.inFlight--
	}()
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	request := &Request{Request: r, Body: body}
	op := c.dialect.Operation(request)
	fault := c.strike(op)
	if fault.Delay > 0 {
		timer := time.NewTimer(fault.Delay)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-r.Context().Done():
			return
		}
	}
	c.work(op)
	answer := c.answer(op, request, fault)
	c.mu.Lock()
	c.calls = append(c.calls, Call{Op: op, Status: answer.Status, Body: string(body), Abandoned: r.Context().Err() != nil})
	c.mu.Unlock()
	if fault.Lost {
		if hijacker, ok := w.(http.Hijacker); ok {
			if connection, _, err := hijacker.Hijack(); err == nil {
				_ = connection.Close()
				return
			}
		}
	}
	for name, value := range answer.Header {
		w.Header().Set(name, value)
	}
	if answer.Type != "" {
		w.Header().Set("Content-Type", answer.Type)
	}
	if fault.Garbled {
		answer.Body = []byte("<{nonsense")
	}
	w.WriteHeader(answer.Status)
	_, _ = w.Write(answer.Body)
}

func (c *Cloud) answer(op string, r *Request, f Fault) Answer {
	if f.Status != 0 {
		answer := c.dialect.Refuse(f.Status, f.Code, f.Message)
		if answer.Header == nil {
			answer.Header = map[string]string{}
		}
		for name, value := range f.Header {
			answer.Header[name] = value
		}
		if f.RetryAfter != "" {
			answer.Header["Retry-After"] = f.RetryAfter
		}
		return answer
	}
	if op == "" {
		return c.dialect.Refuse(http.StatusNotFound, "", "no such call: "+r.Method+" "+r.URL.Path)
	}
	if refused := c.dialect.Allowed(r); refused != nil {
		return *refused
	}
	return c.dialect.Do(op, r)
}
