package loom

import (
	"encoding/json"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// ParameterType is what values a parameter takes.
type ParameterType string

// The types of parameters. A duration is a text such as "30s", a size one such as "64mb".
const (
	ParameterText      ParameterType = "text"
	ParameterMultiline ParameterType = "multiline"
	ParameterNumber    ParameterType = "number"
	ParameterBoolean   ParameterType = "boolean"
	ParameterChoice    ParameterType = "choice"
	ParameterDuration  ParameterType = "duration"
	ParameterSize      ParameterType = "size"
)

// ParameterTypes are all types, in the order in which forms offer them.
var ParameterTypes = []ParameterType{ParameterText, ParameterMultiline, ParameterNumber, ParameterBoolean, ParameterChoice, ParameterDuration, ParameterSize}

// Limits of parameters.
const (
	MaxParameters       = 50  // of a service
	MaxParameterKey     = 100 // characters
	MaxParameterLabel   = 100
	MaxParameterHelp    = 300
	MaxParameterPattern = 300
	MaxParameterOptions = 100
	MaxParameterOption  = 255
)

// Parameter is an input of a service: a key of the config with a type and a rule. Users see
// it as a setting.
type Parameter struct {
	Key      string        `json:"key" required:"true" description:"The path in the config, such as web.title."`
	Label    string        `json:"label,omitempty" description:"The name that users see (default: the key)."`
	Type     ParameterType `json:"type" enum:"text,multiline,number,boolean,choice,duration,size"`
	Default  any           `json:"default,omitempty" description:"Part of the default config, below defaultConfig."`
	Required bool          `json:"required,omitempty" description:"The config must have a value that is not empty."`
	Secret   bool          `json:"secret,omitempty" description:"The value is hidden, as is any value whose key looks secret."`
	Help     string        `json:"help,omitempty"`
	Options  []string      `json:"options,omitempty" description:"The values of a choice."`
	Pattern  string        `json:"pattern,omitempty" description:"An RE2 expression that the whole text must match."`
	Min      any           `json:"min,omitempty" description:"The smallest number, duration or size. For text, the minimum number of characters."`
	Max      any           `json:"max,omitempty" description:"The largest number, duration or size. For text, the maximum number of characters."`
	Restart  bool          `json:"restart,omitempty" description:"A new value takes effect when the service restarts."`
}

// Name is what people read: the label, or else the key.
func (p *Parameter) Name() string {
	if p.Label != "" {
		return p.Label
	}
	return p.Key
}

// isText reports whether values are free text. Min and Max then count characters.
func (p *Parameter) isText() bool { return p.Type == ParameterText || p.Type == ParameterMultiline }

// bounded reports whether the type has bounds.
func (p *Parameter) bounded() bool { return p.Type != ParameterBoolean && p.Type != ParameterChoice }

// settingText gives a value of a config as a text; false for objects, arrays and null.
func settingText(value any) (string, bool) {
	switch v := value.(type) {
	case string:
		return v, true
	case nil, map[string]any, []any:
		return "", false
	}
	return FieldText(value), true
}

// isSet reports whether a value of a config says anything.
func isSet(value any) bool { return value != nil && value != "" }

// Accepts reports whether a parameter takes a value, macros filled in. Configs may have
// numbers and true and false as texts.
func (p *Parameter) Accepts(value any) bool {
	text, scalar := settingText(value)
	if !scalar {
		return false
	}
	var size float64
	switch p.Type {
	case ParameterText, ParameterMultiline:
		if p.Type == ParameterText && strings.ContainsAny(text, "\r\n") || !p.matches(text) {
			return false
		}
		size = float64(utf8.RuneCountInString(text))
	case ParameterBoolean:
		return text == "true" || text == "false"
	case ParameterChoice:
		return slices.Contains(p.Options, text)
	default:
		var ok bool
		if size, ok = p.measure(text); !ok {
			return false
		}
	}
	low, high := p.bounds()
	return size >= low && size <= high
}

func (p *Parameter) matches(text string) bool {
	if p.Pattern == "" {
		return true
	}
	rule, err := regexp.Compile(`^(?:` + p.Pattern + `)$`)
	return err == nil && rule.MatchString(text)
}

// bounds are the least and the greatest measure, infinite where there is none.
func (p *Parameter) bounds() (low, high float64) {
	low, high = math.Inf(-1), math.Inf(1)
	if n, ok := p.bound(p.Min); ok {
		low = n
	}
	if n, ok := p.bound(p.Max); ok {
		high = n
	}
	return low, high
}

// bound reads Min or Max: a value of the type itself, for texts a number of characters.
func (p *Parameter) bound(value any) (float64, bool) {
	text, scalar := settingText(value)
	if !scalar {
		return 0, false
	}
	if p.isText() {
		n, err := strconv.Atoi(text)
		return float64(n), err == nil && n >= 0
	}
	return p.measure(text)
}

// measure reads a number, a duration in seconds or a size in bytes.
func (p *Parameter) measure(text string) (float64, bool) {
	switch p.Type {
	case ParameterNumber:
		n, err := strconv.ParseFloat(text, 64)
		return n, err == nil && !math.IsInf(n, 0) && !math.IsNaN(n) && len(text) <= 40
	case ParameterDuration:
		return measureUnits(text, durationText, durationUnits)
	case ParameterSize:
		return measureUnits(text, sizeText, sizeUnits)
	}
	return 0, false
}

var (
	durationText = regexp.MustCompile(`^([0-9]{1,15}(?:\.[0-9]{1,9})?)(ms|s|m|h|d)$`)
	sizeText     = regexp.MustCompile(`^(?i)([0-9]{1,15}(?:\.[0-9]{1,9})?)(k|m|g|t)?(?:i?b)?$`)

	durationUnits = map[string]float64{"ms": .001, "s": 1, "m": 60, "h": time.Hour.Seconds(), "d": 24 * time.Hour.Seconds()}
	sizeUnits     = map[string]float64{"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}
)

func measureUnits(text string, form *regexp.Regexp, units map[string]float64) (float64, bool) {
	match := form.FindStringSubmatch(text)
	if match == nil {
		return 0, false
	}
	n, err := strconv.ParseFloat(match[1], 64)
	return n * units[strings.ToLower(match[2])], err == nil
}

// Wants says which values a parameter takes: "a number, 1–65535".
func (p *Parameter) Wants() string {
	what, unit := "text", ""
	switch p.Type {
	case ParameterBoolean:
		what = "true or false"
	case ParameterChoice:
		what = "one of the options"
	case ParameterNumber:
		what = "a number"
	case ParameterDuration:
		what = "a duration such as 30s or 5m"
	case ParameterSize:
		what = "a size such as 64mb or 1g"
	default:
		unit = " characters"
		if p.Type == ParameterText {
			what = "one line of text"
		}
	}
	if len(p.Options) > 0 {
		what = "one of " + strings.Join(p.Options, ", ")
	}
	low, high := FieldText(p.Min), FieldText(p.Max)
	switch {
	case low != "" && high != "":
		what += ", " + low + "–" + high + unit
	case low != "":
		what += ", at least " + low + unit
	case high != "":
		what += ", at most " + high + unit
	}
	if p.Pattern != "" {
		what += ", of the form " + p.Pattern
	}
	return what
}

// Settle gives values the JSON type of their parameter: default and bounds of a number are
// numbers, a default of true or false is no text. What does not fit stays.
func (p *Parameter) Settle() {
	if p.Type == "" {
		p.Type = ParameterText
	}
	number := func(value any) any {
		text, isText := value.(string)
		if isText && text == "" {
			return nil
		}
		if _, err := strconv.ParseFloat(text, 64); isText && err == nil && json.Valid([]byte(text)) {
			return json.Number(text)
		}
		return value
	}
	if p.Default == "" {
		p.Default = nil
	}
	switch p.Type {
	case ParameterNumber:
		p.Default, p.Min, p.Max = number(p.Default), number(p.Min), number(p.Max)
	case ParameterBoolean:
		if p.Default == "true" || p.Default == "false" {
			p.Default = p.Default == "true"
		}
	case ParameterText, ParameterMultiline:
		p.Min, p.Max = number(p.Min), number(p.Max)
	}
	if p.Min == "" {
		p.Min = nil
	}
	if p.Max == "" {
		p.Max = nil
	}
}

var parameterKey = regexp.MustCompile(`^[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]+)*$`)

// liesBelow reports whether a key lies inside another one: a.b in a.
func liesBelow(key, outer string) bool { return strings.HasPrefix(key, outer+".") }

// checkParameters checks the parameters of a service by themselves.
func (s *Service) checkParameters() []FieldError {
	if n := len(s.Parameters); n > MaxParameters {
		return []FieldError{{"parameters", fmt.Sprintf("A service has at most %d parameters; these are %d.", MaxParameters, n)}}
	}
	var errs []FieldError
	for i := range s.Parameters {
		p := &s.Parameters[i]
		at := fmt.Sprintf("parameters[%d].", i)
		errs = append(errs, p.validate(at)...)
		for k := range s.Parameters[:i] {
			switch other := s.Parameters[k].Key; {
			case p.Key == other && other != "":
				errs = append(errs, FieldError{at + "key", fmt.Sprintf("There are two parameters with the key “%s”.", other)})
			case liesBelow(p.Key, other) || liesBelow(other, p.Key):
				errs = append(errs, FieldError{at + "key", fmt.Sprintf("“%s” and “%s” can't both be set: one lies inside the other.", p.Key, other)})
			}
		}
		value, there := ConfigValue(s.DefaultConfig, p.Key)
		switch {
		case !there || p.Key == "":
		case p.Default != nil:
			errs = append(errs, FieldError{at + "default", "The default config sets this key too. Enter the default in one of the two places."})
		case isSet(value) && !mayExpand(value) && !p.Accepts(value):
			errs = append(errs, FieldError{"defaultConfig", fmt.Sprintf("The parameter %s must be %s.", p.Key, p.Wants())})
		}
	}
	return errs
}

// mayExpand reports whether a value may hold a macro, so that nothing can be said of it yet.
func mayExpand(value any) bool {
	text, _ := value.(string)
	return strings.Count(text, "%") > 1
}

func (p *Parameter) validate(at string) []FieldError {
	var errs []FieldError
	fail := func(field, format string, args ...any) {
		errs = append(errs, FieldError{at + field, fmt.Sprintf(format, args...)})
	}
	long := func(field, text string, most int) {
		if utf8.RuneCountInString(text) > most {
			fail(field, "At most %d characters.", most)
		}
	}
	if p.Key == "" {
		fail("key", "Enter the path in the config, such as web.title.")
	} else if !parameterKey.MatchString(p.Key) {
		fail("key", "Use letters, digits, “_” and “-”, with dots between the keys, such as web.title.")
	}
	long("key", p.Key, MaxParameterKey)
	long("label", p.Label, MaxParameterLabel)
	long("help", p.Help, MaxParameterHelp)
	if !slices.Contains(ParameterTypes, p.Type) {
		fail("type", "Choose one of %s.", Or(ParameterTypes))
		return errs
	}
	errs = append(errs, p.checkOptions(at)...)
	if p.Pattern != "" {
		if !p.isText() {
			fail("pattern", "Only text has a pattern.")
		}
		long("pattern", p.Pattern, MaxParameterPattern)
		if _, err := regexp.Compile(`^(?:` + p.Pattern + `)$`); err != nil {
			fail("pattern", "Enter a valid RE2 expression. This one fails: %s.", Cut(err.Error(), 200))
		}
	}
	errs = append(errs, p.checkBounds(at)...)
	switch {
	case p.Default == nil:
	case p.Secret:
		fail("default", "A secret has no default: everyone who reads the catalog would know it.")
	case len(errs) == 0 && !mayExpand(p.Default) && !p.Accepts(p.Default):
		fail("default", "Enter %s.", p.Wants())
	}
	return errs
}

func (p *Parameter) checkOptions(at string) []FieldError {
	field := at + "options"
	switch {
	case p.Type != ParameterChoice && len(p.Options) > 0:
		return []FieldError{{field, "Only a choice has options."}}
	case p.Type == ParameterChoice && len(p.Options) == 0:
		return []FieldError{{field, "Enter the values to choose from."}}
	case len(p.Options) > MaxParameterOptions:
		return []FieldError{{field, fmt.Sprintf("At most %d options.", MaxParameterOptions)}}
	}
	for i, option := range p.Options {
		switch {
		case option == "" || utf8.RuneCountInString(option) > MaxParameterOption:
			return []FieldError{{field, fmt.Sprintf("An option has 1–%d characters.", MaxParameterOption)}}
		case slices.Contains(p.Options[:i], option):
			return []FieldError{{field, fmt.Sprintf("“%s” appears twice.", option)}}
		}
	}
	return nil
}

func (p *Parameter) checkBounds(at string) []FieldError {
	var errs []FieldError
	for _, b := range []struct {
		field string
		value any
	}{{"min", p.Min}, {"max", p.Max}} {
		if b.value == nil {
			continue
		}
		if !p.bounded() {
			errs = append(errs, FieldError{at + b.field, fmt.Sprintf("A %s has no bounds.", p.Type)})
		} else if _, ok := p.bound(b.value); !ok {
			bare := Parameter{Type: p.Type}
			if bare.isText() {
				bare.Type = ParameterNumber
			}
			errs = append(errs, FieldError{at + b.field, fmt.Sprintf("Enter %s.", bare.Wants())})
		}
	}
	if low, high := p.bounds(); len(errs) == 0 && low > high {
		errs = append(errs, FieldError{at + "max", "The maximum is below the minimum."})
	}
	return errs
}
