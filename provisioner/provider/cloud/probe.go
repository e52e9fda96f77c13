package cloud

import (
	"context"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"loom/app/loom"
)

// The names of the checks that probes of clouds have in common, in their order.
const (
	StepResolve = "resolve"
	StepConnect = "connect"
	StepTLS     = "TLS"
	StepSignIn  = "sign in"
	StepRegion  = "region"
	StepKeyPair = "key pair"
	StepSizes   = "sizes"
	StepImages  = "images"

	// stepSettings is what a provider is told whose own fields are wrong.
	stepSettings = "settings"
)

// Ask opens a session for a question that somebody waits for: calls are short, made twice
// at most, and say what is so now. It shares no connection and no token. A probe begins
// with the steps of the way to the cloud, which the first call takes; Answer has them.
func (o Options) Ask(t loom.PluginType, call *loom.ProviderCall, classify func(error) *Error) *Session {
	s := o.Sweep(t, call, classify)
	probe := loom.NewProbe(call.Told)
	s.brief, s.answer = true, &probe
	if call.Ask.Kind == "" {
		s.way = &way{probe: &probe}
	}
	return s
}

// Sweep opens a session for a question outside of tasks that nobody waits for.
func (o Options) Sweep(t loom.PluginType, call *loom.ProviderCall, classify func(error) *Error) *Session {
	s := o.Begin(t, &loom.TaskSpec{Tenant: call.Tenant, Provider: call.Provider, Sensitive: call.Sensitive, Reach: call.Reach}, nil, classify)
	s.apart = true
	return s
}

// Asked reports whether somebody waits for the answer: the session is one of Ask.
func (s *Session) Asked() bool { return s.brief }

// Answer is what a session of Ask found so far.
func (s *Session) Answer() *loom.Probe { return s.answer }

// SignedIn tells a probe that the cloud takes the credentials; outside of one it does nothing.
func (s *Session) SignedIn(message string) {
	if s.way != nil {
		s.answer.Check(StepSignIn, true, message)
	}
}

// Offer tells a probe of values that a field can be set to; outside of one it does nothing.
func (s *Session) Offer(field string, values []string) {
	if s.way == nil {
		return
	}
	for _, v := range values {
		s.answer.Offer(field, v, "")
	}
}

// CheckKey looks whether the private key of the field ssh_key_resource is there and can
// be read, for clouds that know no key pairs.
func CheckKey(ctx context.Context, call *loom.ProviderCall, probe *loom.Probe) {
	if name := Fields(call.Provider.Fields).Text("ssh_key_resource"); name == "" {
		return
	} else if _, err := privateKey(ctx, call); err != nil {
		probe.Check(StepKeyPair, false, Sentence(err.Error()))
	} else {
		probe.Check(StepKeyPair, true, "The private key “"+name+"” exists.")
	}
}

// Look makes a call for a check and says how it went: found is the message of
// success. It reports false when the check failed. When ctx ends before that, it says why the
// last try failed, if one did; what comes later looks at nothing.
func (s *Session) Look(ctx context.Context, probe *loom.Probe, name, found string, do func(context.Context) error) bool {
	if ctx.Err() != nil {
		return false
	}
	if err := s.Call(ctx, do); err != nil {
		if ctx.Err() != nil {
			s.ended(probe, name)
			return false
		}
		e := s.Error(err)
		probe.Check(trouble(e, name), false, Sentence(e.Message))
		return false
	}
	if found != "" {
		probe.Check(name, true, found)
	}
	return true
}

// ended says of a check that its time ran out.
func (s *Session) ended(probe *loom.Probe, name string) {
	if s.last != nil {
		probe.Check(trouble(s.last, name), false, Sentence(s.last.Message))
		return
	}
	probe.Check(name, false, "There was no answer in the time that a test may take.")
}

// listSizes lists what the cloud offers for hardware types.
func (s *Session) listSizes(ctx context.Context, probe *loom.Probe, list func(context.Context) ([]loom.ProbeFlavor, error)) {
	if s.Look(ctx, probe, StepSizes, "", func(ctx context.Context) (err error) {
		probe.Flavors, err = list(ctx)
		return err
	}) {
		probe.Check(StepSizes, true, counted(len(probe.Flavors), "size"))
	}
}

// listImages lists what the cloud offers for image types.
func (s *Session) listImages(ctx context.Context, probe *loom.Probe, list func(context.Context) ([]loom.ProbeImage, error)) {
	if s.Look(ctx, probe, StepImages, "", func(ctx context.Context) (err error) {
		probe.Images, err = list(ctx)
		return err
	}) {
		probe.Check(StepImages, true, counted(len(probe.Images), "image"))
	}
}

func counted(n int, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return fmt.Sprintf("%d %s.", n, noun)
}

// Choices looks for the values that a field can be set to. That they cannot be listed is no
// failure: the field takes what is typed.
func (s *Session) Choices(ctx context.Context, probe *loom.Probe, field string, list func(context.Context) ([]loom.ProbeChoice, error)) {
	var found []loom.ProbeChoice
	if ctx.Err() != nil || s.Once(ctx, func(ctx context.Context) (err error) {
		found, err = list(ctx)
		return err
	}) != nil {
		return
	}
	for _, c := range found {
		probe.Offer(field, c.ID, c.Name)
	}
}

// Failed is the answer of a provider that cannot be asked for an error.
func (s *Session) Failed(ctx context.Context, err error) loom.Probe {
	if ctx.Err() != nil {
		s.ended(s.answer, StepSignIn)
		return *s.answer
	}
	e := s.Error(err)
	s.answer.Check(trouble(e, stepSettings), false, Sentence(e.Message))
	return *s.answer
}

// trouble names the check that an error belongs to; usual where it is about what the check looks at.
func trouble(e *Error, usual string) string {
	switch {
	case e.Step != "":
		return e.Step
	case e.Kind == Credentials:
		return StepSignIn
	case e.Kind == Unreachable:
		return StepConnect
	case usual == stepSettings && e.Kind != Refused:
		return StepSignIn
	}
	return usual
}

// LookUp answers a question about one size or image: do gives what the cloud calls it,
// "" where that is not known, or why it cannot be had. The error is the cause with
// which ctx ended.
func (s *Session) LookUp(ctx context.Context, ask loom.Offer, do func(context.Context) (string, error)) (loom.Probe, error) {
	probe, name := loom.Probe{OK: true}, ""
	if err := s.Call(ctx, func(ctx context.Context) (err error) {
		name, err = do(ctx)
		return err
	}); err != nil {
		if ctx.Err() != nil {
			return loom.Probe{}, context.Cause(ctx)
		}
		e := s.Error(err)
		message := Sentence(e.Message)
		if e.Kind == NotFound {
			message = "The provider has no such " + ask.Kind.Noun() + ": " + message
		}
		probe.Check(string(ask.Kind), false, message)
		return probe, nil
	}
	found := "The provider has it."
	if name != "" && name != ask.ID {
		found = "The provider has it: " + s.clean(name) + "."
	}
	probe.Check(string(ask.Kind), true, found)
	return probe, nil
}

// Sentence returns a message as a sentence.
func Sentence(text string) string {
	first, size := utf8.DecodeRuneInString(text)
	if size == 0 {
		return ""
	}
	return string(unicode.ToUpper(first)) + strings.TrimSuffix(text[size:], ".") + "."
}
