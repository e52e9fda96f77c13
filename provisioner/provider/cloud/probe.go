package cloud

import (
	"context"
	"strings"
	"unicode"
	"unicode/utf8"

	"loom/app/loom"
)

// Ask opens a session for a question that somebody waits for: calls are short, made twice
// at most, and say what is so now.
func (o Options) Ask(t loom.PluginType, call *loom.ProviderCall, classify func(error) *Error) *Session {
	s := o.Sweep(t, call, classify)
	s.brief = true
	return s
}

// Sweep opens a session for a question outside of tasks that nobody waits for.
func (o Options) Sweep(t loom.PluginType, call *loom.ProviderCall, classify func(error) *Error) *Session {
	s := o.Begin(t, &loom.TaskSpec{Tenant: call.Tenant, Provider: call.Provider, Sensitive: call.Sensitive, Reach: call.Reach}, nil, classify)
	s.apart = true
	return s
}

// CheckKey looks whether the private key of the field ssh_key_resource is there and can
// be read.
func CheckKey(ctx context.Context, call *loom.ProviderCall, probe *loom.Probe) {
	if name := Fields(call.Provider.Fields).Text("ssh_key_resource"); name == "" {
		return
	} else if _, err := privateKey(ctx, call); err != nil {
		probe.Check("SSH key", false, Sentence(err.Error()))
	} else {
		probe.Check("SSH key", true, "The private key “"+name+"” is there.")
	}
}

// Look makes a call for a check and says how it went: found is the message of
// success. It reports false when the check failed.
func (s *Session) Look(ctx context.Context, probe *loom.Probe, name, found string, do func(context.Context) error) bool {
	if err := s.Call(ctx, do); err != nil {
		e := s.Error(err)
		probe.Check(trouble(e, name), false, Sentence(e.Message))
		return false
	}
	if found != "" {
		probe.Check(name, true, found)
	}
	return true
}

// Failed is the answer of a provider that cannot be asked for an error.
func (s *Session) Failed(err error) loom.Probe {
	e := s.Error(err)
	return loom.FailedProbe(trouble(e, "settings"), Sentence(e.Message))
}

// trouble names the check that an error belongs to; usual where it is about what the check looks at.
func trouble(e *Error, usual string) string {
	switch e.Kind { //nolint:exhaustive // the others are about what the check looks at
	case Credentials:
		return "credentials"
	case Unreachable:
		return "connection"
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

// Sentence gives a message as a sentence.
func Sentence(text string) string {
	first, size := utf8.DecodeRuneInString(text)
	if size == 0 {
		return ""
	}
	return string(unicode.ToUpper(first)) + strings.TrimSuffix(text[size:], ".") + "."
}
