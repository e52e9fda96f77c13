package cloud

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"loom/app/loom"
	"loom/provisioner/provider"
)

// Session is the dealings of one action with a cloud.
type Session struct {
	Options
	// Fields of the provider.
	Fields Fields
	// Reach says which addresses may be called.
	Reach loom.Reach
	// Action and Task of the session of a task; empty outside of tasks.
	Action   loom.TaskAction
	Task     *loom.TaskSpec
	sink     loom.Sink
	classify func(error) *Error
	secrets  []string
	tenant   loom.TenantID
	// kind is the provider type. At most most calls for the same gate are in flight.
	kind, gate string
	most       int
	// endpoint is the cloud that the provider leads to now.
	endpoint string
	// apart says that nothing waits for a turn, brief that somebody waits for the answer.
	apart, brief bool
	// answer is what a session of Ask has found, way tells it the steps to the cloud, and
	// last is why a call of it failed that was made again.
	answer *loom.Probe
	way    *way
	last   *Error
}

// Begin opens a session for a task. t says which fields are secret. A nil sink says
// nothing.
func (o Options) Begin(t loom.PluginType, spec *loom.TaskSpec, sink loom.Sink, classify func(error) *Error) *Session {
	o.Pace = o.Pace.usual()
	s := &Session{Options: o, Fields: spec.Provider.Fields, Reach: spec.Reach, sink: sink, classify: classify, secrets: append([]string(nil), spec.Sensitive...),
		tenant: spec.Tenant, kind: t.Name}
	s.gate, s.endpoint = gateOf(t, spec.Tenant, s.Fields), endpointOf(t, s.Fields)
	if s.most, _ = s.Fields.Number(provider.CallsField, usualCalls, mostCalls); s.most < 1 {
		s.most = usualCalls
	}
	for _, group := range t.Parameters {
		for name, f := range group.Fields {
			if f.IsSensitive() {
				s.secrets = append(s.secrets, s.Fields.Text(name))
			}
		}
	}
	return s
}

// Log says something in the log of the task.
func (s *Session) Log(format string, args ...any) {
	if s.sink != nil {
		s.sink.Log("loom", s.clean(fmt.Sprintf(format, args...)))
	}
}

// Fact stores results of the task now, whatever becomes of it.
func (s *Session) Fact(results map[string]any) error { return s.sink.Fact(results) }

// messageLimit is how much of a cloud's message is kept, in bytes.
const messageLimit = 500

// clean returns one line without secrets.
func (s *Session) clean(text string) string {
	for _, secret := range s.secrets {
		if len(secret) >= 4 {
			text = strings.ReplaceAll(text, secret, loom.Redacted)
		}
	}
	text = strings.Join(strings.Fields(text), " ")
	if len(text) > messageLimit {
		text = strings.ToValidUTF8(text[:messageLimit], "") + " …"
	}
	return text
}

// Error classifies the error of a call, and takes secrets out of its message. What
// is an *Error already keeps its kind and words.
func (s *Session) Error(err error) *Error {
	var e *Error
	own := errors.As(err, &e)
	if !own {
		e = s.classify(err)
	}
	if e == nil {
		e = FromNetwork(err)
	}
	said := *e
	var b before
	said.Before = e.Before || errors.As(err, &b)
	said.Message = s.clean(e.Message)
	if said.Kind == Credentials && !own {
		said.Message = "the cloud refuses the credentials: " + said.Message
	}
	return &said
}

// Call makes a call that changes nothing, or may be made again, until it succeeds
// or fails for good: throttling, trouble of the cloud and lost answers are
// waited out for Pace.Patience. The error is an *Error, or the cause with which
// ctx ended.
func (s *Session) Call(ctx context.Context, do func(ctx context.Context) error) error {
	return s.call(ctx, (*Error).passes, do)
}

// Once makes a call whose failure does not matter much, one time.
func (s *Session) Once(ctx context.Context, do func(ctx context.Context) error) error {
	ctx, leave, err := s.turn(ctx)
	if err != nil {
		return err
	}
	defer leave()
	ctx = asking(ctx)
	if s.brief {
		ctx = context.WithValue(ctx, briefKey{}, true)
	}
	ctx, end := s.way.begin(ctx)
	defer end()
	return do(ctx)
}

// briefTries is how often a call is made that somebody waits for.
const briefTries = 2

func (s *Session) call(ctx context.Context, again func(*Error) bool, do func(context.Context) error) error {
	w, wait := s.Pace.watch(), s.Pace.Backoff
	s.last = nil
	for tries := 1; ; tries++ {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		err := s.Once(ctx, do)
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		e := s.Error(err)
		s.last = e
		if !again(e) || s.brief && (tries == briefTries || e.RetryAfter > briefLimit) {
			return e
		}
		pause := wait/2 + rand.N(wait)
		if e.RetryAfter > 0 {
			pause = max(pause, e.RetryAfter)
		}
		if w.elapsed()+pause > s.Pace.Patience {
			return e
		}
		s.Log("%s; trying again in %s", e.Message, pause.Round(100*time.Millisecond))
		if err := w.sleep(ctx, pause); err != nil {
			return err
		}
		wait = min(2*wait, s.Pace.MaxBackoff)
	}
}

// failure returns the result of a CONFIRM or DELETE that failed with an error of Open,
// Call, Await or a driver.
func (s *Session) failure(ctx context.Context, err error) (loom.TaskResult, error) {
	return s.resultOf(ctx, err, false)
}

// createFailure returns the result of a CREATE that failed before anything was made.
func (s *Session) createFailure(ctx context.Context, err error) (loom.TaskResult, error) {
	return s.resultOf(ctx, err, true)
}

func (s *Session) resultOf(ctx context.Context, err error, create bool) (loom.TaskResult, error) {
	if ctx.Err() != nil {
		return loom.TaskResult{}, context.Cause(ctx)
	}
	var own local
	if errors.As(err, &own) {
		return loom.TaskResult{}, own.error
	}
	return s.Error(err).result(create, false), nil
}
