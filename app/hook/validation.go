package hook

import (
	"fmt"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"loom/app/loom"
)

// Limits of what a hook holds.
const (
	maxName   = 100
	maxURL    = 2000
	minSecret = 16
	maxSecret = 200
	maxList   = 100
)

// checkInput checks rights and input and gives the hook that comes of it. Errors:
// Invalid with fields, Forbidden.
func (u *Hooks) checkInput(actor loom.Actor, in Input) (loom.Hook, error) {
	var h loom.Hook
	if err := actor.May(loom.Administer, actor.InTenant()); err != nil {
		return h, err
	}
	if in.Global && actor.May(loom.Install, loom.Installation) != nil {
		return h, &loom.Error{Kind: loom.Forbidden, Message: "A hook for all tenants needs the role of a superadmin; ask whoever runs Loom.",
			Fields: []loom.FieldError{{Field: "global", Message: "Leave this out for a hook of your tenant."}}}
	}
	h = loom.Hook{
		Tenant: actor.Tenant, Name: strings.TrimSpace(in.Name), URL: in.URL, Events: in.Events, Actions: in.Actions, Templates: in.Templates,
		Blocking: in.Blocking, OnTimeout: in.OnTimeout, Global: in.Global, LegacyBody: in.LegacyBody, Enabled: in.Enabled,
	}
	var errs []loom.FieldError
	if n := utf8.RuneCountInString(h.Name); n < 1 || n > maxName || !plain(h.Name) {
		errs = append(errs, loom.FieldError{Field: "name", Message: fmt.Sprintf("A hook has a name of 1 to %d characters that says what it is for.", maxName)})
	}
	if why := u.badURL(h.URL); why != "" {
		errs = append(errs, loom.FieldError{Field: "url", Message: why})
	}
	errs = append(errs, checkLists(&h)...)
	switch h.OnTimeout {
	case "":
		h.OnTimeout = loom.OnTimeoutRefuse
	case loom.OnTimeoutGo, loom.OnTimeoutRefuse:
	default:
		errs = append(errs, loom.FieldError{Field: "onTimeout", Message: fmt.Sprintf("“%.40s” is neither “go” nor “refuse”.", h.OnTimeout)})
	}
	if h.Blocking && !slices.Contains(h.Events, loom.HookStart) {
		errs = append(errs, loom.FieldError{Field: "blocking", Message: "Only a hook that hears of the start can be asked; add “start” to its events."})
	}
	if s := in.Secret; s != nil && (len(*s) < minSecret || len(*s) > maxSecret || !printable(*s)) {
		errs = append(errs, loom.FieldError{Field: "secret",
			Message: fmt.Sprintf("Enter %d–%d printable ASCII characters, or omit the secret to generate one.", minSecret, maxSecret)})
	}
	return h, loom.InvalidFields(errs)
}

// checkLists checks events, actions and templates and puts them in order.
func checkLists(h *loom.Hook) []loom.FieldError {
	var errs []loom.FieldError
	for i, e := range h.Events {
		if !slices.Contains(loom.HookEvents, e) {
			errs = append(errs, loom.FieldError{Field: at("events", i), Message: fmt.Sprintf("There is no event “%.40s”; events are start, success, failure and health.", e)})
		}
	}
	if h.Events = ordered(loom.HookEvents, h.Events); len(h.Events) == 0 {
		h.Events = loom.OperationEvents
	}
	if h.LegacyBody && slices.Contains(h.Events, loom.HookHealth) {
		errs = append(errs, loom.FieldError{Field: "events", Message: "The legacy payload has no health event. Remove the event health, or turn off the legacy payload."})
	}
	for i, a := range h.Actions {
		if !slices.Contains(loom.HookActions, a) {
			errs = append(errs, loom.FieldError{Field: at("actions", i), Message: fmt.Sprintf("There is no cluster action “%.40s”; one is “%s”.", a, loom.ClusterCreate)})
		}
	}
	h.Actions = ordered(loom.HookActions, h.Actions)
	for i, name := range h.Templates {
		errs = append(errs, loom.CheckName(at("templates", i), name)...)
	}
	h.Templates = slices.Compact(slices.Sorted(slices.Values(h.Templates)))
	if len(h.Templates) > maxList {
		errs = append(errs, loom.FieldError{Field: "templates", Message: fmt.Sprintf("Name at most %d templates, or none for all.", maxList)})
	}
	return errs
}

func at(field string, i int) string { return field + "[" + strconv.Itoa(i) + "]" }

func ordered[T comparable](all, some []T) []T {
	return slices.DeleteFunc(slices.Clone(all), func(v T) bool { return !slices.Contains(some, v) })
}

// badURL says what is wrong with the address of a hook, "" when it may be saved.
// What a name resolves to is looked at when it is called.
func (u *Hooks) badURL(text string) string {
	target, err := url.Parse(text)
	switch {
	case text == "":
		return "Enter the address that Loom calls, such as “https://ci.example/loom”."
	case len(text) > maxURL:
		return fmt.Sprintf("An address has at most %d characters.", maxURL)
	case err != nil || !printable(text):
		return "This is no address; one looks like “https://ci.example/loom”."
	case target.Scheme != "http" && target.Scheme != "https":
		return "An address begins with http:// or https://."
	case target.Hostname() == "":
		return "The address names no host."
	case target.User != nil:
		return "Leave user and password out of the address; deliveries are signed with the hook's secret."
	case target.Fragment != "":
		return "Remove the part after “#”. It is never sent."
	}
	if port := target.Port(); port != "" {
		if n, err := strconv.Atoi(port); err != nil || n < 1 || n > 65535 {
			return "The port of the address is a number from 1 to 65535."
		}
	}
	host := strings.ToLower(strings.TrimSuffix(target.Hostname(), "."))
	addr, err := netip.ParseAddr(host)
	if err != nil && (host == "localhost" || strings.HasSuffix(host, ".localhost")) {
		addr, err = netip.AddrFrom4([4]byte{127, 0, 0, 1}), nil
	}
	switch dot := strings.LastIndexByte(host, '.'); {
	case err == nil && !u.opts.Reach.May(addr):
		return private(host)
	case err != nil && numeric.MatchString(host[dot+1:]):
		return fmt.Sprintf("“%.50s” is no name; write a number as an address, such as 203.0.113.7.", host)
	case err != nil && dot < 0 && len(u.opts.Reach.Networks) == 0:
		return fmt.Sprintf("“%.50s” names a host of this network; give a whole name, such as “ci.example”. Whoever runs Loom can allow such networks with LOOM_HOOK_NETWORKS.", host)
	}
	return ""
}

// numeric is the last part of what some resolvers read as an address: 0, 127.1, 0x7f.1.
var numeric = regexp.MustCompile(`^([0-9]+|0x[0-9a-f]*)$`)

func private(host string) string {
	return fmt.Sprintf("“%s” is in a private or special network, or this host; whoever runs Loom can allow such networks with LOOM_HOOK_NETWORKS.", host)
}

func plain(text string) bool {
	return utf8.ValidString(text) && !strings.ContainsFunc(text, unicode.IsControl)
}

func printable(text string) bool {
	return !strings.ContainsFunc(text, func(c rune) bool { return c <= ' ' || c > '~' })
}
