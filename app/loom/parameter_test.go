package loom

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

func TestParameterAccepts(t *testing.T) {
	t.Parallel()
	number := Parameter{Type: ParameterNumber, Min: json.Number("1"), Max: json.Number("65535")}
	for _, c := range []struct {
		p        Parameter
		yes, not []any
	}{
		{Parameter{Type: ParameterText}, []any{"a", "", json.Number("7"), true, "%"}, []any{"a\nb", nil, map[string]any{}, []any{"a"}}},
		{Parameter{Type: ParameterText, Pattern: "[a-z]+"}, []any{"abc"}, []any{"abc1", "", "ABC", "abc\n"}},
		{Parameter{Type: ParameterText, Pattern: "a|b"}, []any{"a", "b"}, []any{"ab", "xb"}},
		{Parameter{Type: ParameterText, Min: json.Number("2"), Max: "3"}, []any{"äö", "abc"}, []any{"ä", "abcd"}},
		{Parameter{Type: ParameterMultiline}, []any{"a\nb"}, []any{map[string]any{}}},
		{number, []any{json.Number("1"), "65535", 80.0, 80}, []any{"0", "65536", "80a", "", "NaN", "Inf", true, " 80"}},
		{Parameter{Type: ParameterBoolean}, []any{true, false, "true"}, []any{"yes", json.Number("1"), ""}},
		{Parameter{Type: ParameterChoice, Options: []string{"a", "7"}}, []any{"a", json.Number("7")}, []any{"b", "", "A"}},
		{Parameter{Type: ParameterDuration, Min: "10s", Max: "1h"}, []any{"10s", "0.5h", "60m"}, []any{"9999ms", "61m", "10", "-1s", "10 s"}},
		{Parameter{Type: ParameterSize, Min: "1m", Max: "1g"}, []any{"1mb", "1024KiB", "1G", "1048576"}, []any{"1023k", "2g", "1x", ""}},
	} {
		for _, v := range c.yes {
			if !c.p.Accepts(v) {
				t.Errorf("%+v refuses %v", c.p, v)
			}
		}
		for _, v := range c.not {
			if c.p.Accepts(v) {
				t.Errorf("%+v accepts %v", c.p, v)
			}
		}
	}
}

func TestParametersOfAService(t *testing.T) {
	t.Parallel()
	text := func(key string) Parameter { return Parameter{Key: key, Type: ParameterText} }
	for name, c := range map[string]struct {
		parameters []Parameter
		config     map[string]any
		wrong      []string
	}{
		"fine":              {[]Parameter{{Key: "web.title", Type: ParameterText, Default: "Hello", Required: true}, {Key: "web.port", Type: ParameterNumber, Min: json.Number("1")}}, map[string]any{"web": map[string]any{"port": json.Number("80")}}, nil},
		"macro as default":  {[]Parameter{{Key: "a", Type: ParameterNumber, Default: "%num.service.a%"}}, nil, nil},
		"key":               {[]Parameter{text(""), text("a b"), text("a..b"), text(strings.Repeat("k", 101))}, nil, []string{"parameters[0].key", "parameters[1].key", "parameters[2].key", "parameters[3].key"}},
		"key twice":         {[]Parameter{text("a"), text("a")}, nil, []string{"parameters[1].key"}},
		"key in a key":      {[]Parameter{text("a.b"), text("a")}, nil, []string{"parameters[1].key"}},
		"too many":          {make([]Parameter, 51), nil, []string{"parameters"}},
		"long":              {[]Parameter{{Key: "a", Type: ParameterText, Help: strings.Repeat("h", 301), Label: strings.Repeat("l", 101)}}, nil, []string{"parameters[0].label", "parameters[0].help"}},
		"type":              {[]Parameter{{Key: "a", Type: "list"}}, nil, []string{"parameters[0].type"}},
		"options elsewhere": {[]Parameter{{Key: "a", Type: ParameterText, Options: []string{"x"}}}, nil, []string{"parameters[0].options"}},
		"no options":        {[]Parameter{{Key: "a", Type: ParameterChoice}}, nil, []string{"parameters[0].options"}},
		"option twice":      {[]Parameter{{Key: "a", Type: ParameterChoice, Options: []string{"x", "x"}}}, nil, []string{"parameters[0].options"}},
		"pattern":           {[]Parameter{{Key: "a", Type: ParameterText, Pattern: "("}, {Key: "b", Type: ParameterText, Pattern: "(?=x)"}, {Key: "c", Type: ParameterNumber, Pattern: "1"}}, nil, []string{"parameters[0].pattern", "parameters[1].pattern", "parameters[2].pattern"}},
		"bounds":            {[]Parameter{{Key: "a", Type: ParameterNumber, Min: json.Number("2"), Max: json.Number("1")}, {Key: "b", Type: ParameterSize, Min: "much"}, {Key: "c", Type: ParameterBoolean, Max: json.Number("1")}}, nil, []string{"parameters[0].max", "parameters[1].min", "parameters[2].max"}},
		"default":           {[]Parameter{{Key: "a", Type: ParameterNumber, Default: "x"}, {Key: "b", Type: ParameterText, Secret: true, Default: "x"}}, nil, []string{"parameters[0].default", "parameters[1].default"}},
		"default twice":     {[]Parameter{{Key: "a.b", Type: ParameterText, Default: "x"}}, map[string]any{"a": map[string]any{"b": "y"}}, []string{"parameters[0].default"}},
		"default config":    {[]Parameter{{Key: "a.b", Type: ParameterNumber}}, map[string]any{"a": map[string]any{"b": "y"}}, []string{"defaultConfig"}},
	} {
		s := Service{Parameters: c.parameters, DefaultConfig: c.config}
		var got []string
		for _, e := range s.checkParameters() {
			got = append(got, e.Field)
		}
		if fmt.Sprint(got) != fmt.Sprint(c.wrong) {
			t.Errorf("%s: wrong are %v, want %v", name, got, c.wrong)
		}
	}
}

// TestWordsOfParametersDoNotChangeWork: what is only shown to people restarts nothing.
func TestWordsOfParametersDoNotChangeWork(t *testing.T) {
	t.Parallel()
	s := Service{Parameters: []Parameter{{Key: "a", Type: ParameterText, Help: "old"}}}
	other := Service{Parameters: []Parameter{{Key: "a", Type: ParameterText, Label: "A", Help: "new"}}}
	if !s.SameWork(&other) {
		t.Error("another label counts as other work")
	}
	if other.Parameters[0].Default = "x"; s.SameWork(&other) {
		t.Error("another default counts as the same work")
	}
	if s.Parameters[0].Help != "old" || other.Parameters[0].Help != "new" {
		t.Error("comparing changed the services")
	}
}

func TestSettleParameter(t *testing.T) {
	t.Parallel()
	n := Parameter{Type: ParameterNumber, Default: "80", Min: "1", Max: ""}
	n.Settle()
	if n.Default != json.Number("80") || n.Min != json.Number("1") || n.Max != nil {
		t.Errorf("a number settles as %+v", n)
	}
	b := Parameter{Type: ParameterBoolean, Default: "true"}
	if b.Settle(); b.Default != true {
		t.Errorf("a boolean settles as %+v", b)
	}
	var none Parameter
	if none.Settle(); none.Type != ParameterText {
		t.Errorf("no type settles as %q", none.Type)
	}
}

// FuzzParameter: no parameter and no value makes the rules panic, and a valid parameter takes
// its own default.
func FuzzParameter(f *testing.F) {
	f.Add(`{"key":"web.port","type":"number","min":1,"max":"9","default":"7"}`, "5")
	f.Add(`{"key":"a","type":"size","min":"1k","default":"2mb"}`, "1g")
	f.Add(`{"key":"a","type":"text","pattern":"^(a|b)+$","max":3}`, "ab")
	f.Add(`{"key":"a","type":"choice","options":["%a%","b"],"default":"b"}`, "%")
	f.Fuzz(func(t *testing.T, document, value string) {
		var p Parameter
		d := json.NewDecoder(strings.NewReader(document))
		d.UseNumber()
		if d.Decode(&p) != nil {
			return
		}
		p.Settle()
		s := Service{Base: Base{Name: "s"}, Parameters: []Parameter{p}}
		valid := len(s.checkParameters()) == 0
		_ = p.Wants()
		services := map[string]Service{"s": s}
		config := SetConfigValue(nil, p.Key, value)
		SettingsCheck{Services: services}.Check(config)
		if shown := SecretKeysOf(services).Mask(config); valid && p.Secret && value != "" {
			if got, _ := ConfigValue(shown, p.Key); got != Redacted && !LooksSecret(strings.Split(p.Key, ".")[0]) && !SecretKeysOf(services).HidesAt(p.Key) {
				t.Errorf("%s shows %v", p.Key, got)
			}
		}
		if valid && p.Default != nil {
			if errs := (SettingsCheck{Services: services}).Check(s.Defaults()); len(errs) > 0 {
				t.Errorf("%+v refuses its own default: %v", p, errs)
			}
		}
	})
}
