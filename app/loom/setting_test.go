package loom

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
)

func serviceWith(name string, parameters ...Parameter) Service {
	return Service{Base: Base{Name: name}, Parameters: parameters}
}

func byName(services ...Service) map[string]Service {
	all := map[string]Service{}
	for _, s := range services {
		all[s.Name] = s
	}
	return all
}

func TestSettingsCheck(t *testing.T) {
	t.Parallel()
	title := Parameter{Key: "web.title", Type: ParameterText, Required: true}
	port := Parameter{Key: "web.port", Type: ParameterNumber, Min: json.Number("1"), Max: json.Number("65535")}
	locked := &Template{Locked: []string{"web"}, Defaults: Defaults{Config: map[string]any{"web": map[string]any{"port": json.Number("80")}}}}
	one := func(...string) func(string) []string {
		return func(text string) []string { return []string{strings.ReplaceAll(text, "%n%", "3")} }
	}
	for name, c := range map[string]struct {
		check  SettingsCheck
		config string
		want   string
	}{
		"fine":             {SettingsCheck{Services: byName(serviceWith("nginx", title, port))}, `{"web":{"title":"Hi","port":"80"}}`, ""},
		"missing":          {SettingsCheck{Services: byName(serviceWith("nginx", title))}, `{}`, "config.web.title: nginx needs web.title."},
		"empty":            {SettingsCheck{Services: byName(serviceWith("nginx", title))}, `{"web":{"title":""}}`, "config.web.title: nginx needs web.title."},
		"null":             {SettingsCheck{Services: byName(serviceWith("nginx", title))}, `{"web":{"title":null}}`, "config.web.title: nginx needs web.title."},
		"no object":        {SettingsCheck{Services: byName(serviceWith("nginx", title))}, `{"web":"x"}`, "config.web.title: nginx needs web.title."},
		"missing, partly":  {SettingsCheck{Services: byName(serviceWith("nginx", title)), Partly: true}, `{}`, ""},
		"wrong, partly":    {SettingsCheck{Services: byName(serviceWith("nginx", port)), Partly: true}, `{"web":{"port":0}}`, "config.web.port: nginx: web.port must be a number, 1–65535."},
		"optional, empty":  {SettingsCheck{Services: byName(serviceWith("nginx", port))}, `{"web":{"port":""}}`, ""},
		"an object":        {SettingsCheck{Services: byName(serviceWith("nginx", port))}, `{"web":{"port":{}}}`, "config.web.port: nginx: web.port must be a number, 1–65535."},
		"macro, unknown":   {SettingsCheck{Services: byName(serviceWith("nginx", port)), Expand: func(string) []string { return nil }}, `{"web":{"port":"%n%"}}`, ""},
		"macro, fine":      {SettingsCheck{Services: byName(serviceWith("nginx", port)), Expand: one()}, `{"web":{"port":"%n%"}}`, ""},
		"macro, wrong":     {SettingsCheck{Services: byName(serviceWith("nginx", port)), Expand: one()}, `{"web":{"port":"%n%x"}}`, "config.web.port: nginx: web.port must be a number, 1–65535."},
		"macro, no nodes":  {SettingsCheck{Services: byName(serviceWith("nginx", port))}, `{"web":{"port":"%n%"}}`, ""},
		"a percent sign":   {SettingsCheck{Services: byName(serviceWith("nginx", port))}, `{"web":{"port":"5%"}}`, "config.web.port: nginx: web.port must be a number, 1–65535."},
		"locked, same":     {SettingsCheck{Services: byName(serviceWith("nginx", port)), Template: locked}, `{"web":{"port":80}}`, ""},
		"locked, other":    {SettingsCheck{Services: byName(serviceWith("nginx", port)), Template: locked}, `{"web":{"port":81}}`, "config.web.port: The template sets web.port, and its value can't be changed."},
		"beside the lock":  {SettingsCheck{Services: byName(serviceWith("nginx", title)), Template: locked}, `{"web":{"title":"x"}}`, ""},
		"stricter of two":  {SettingsCheck{Services: byName(serviceWith("a", Parameter{Key: "web.port", Type: ParameterNumber}), serviceWith("b", port))}, `{"web":{"port":0}}`, "config.web.port: b: web.port must be a number, 1–65535."},
		"types differ":     {SettingsCheck{Services: byName(serviceWith("a", port), serviceWith("b", Parameter{Key: "web.port", Type: ParameterText}))}, `{}`, "services: a and b can't share a cluster: web.port is a number for the one and a text for the other."},
		"one in the other": {SettingsCheck{Services: byName(serviceWith("a", port), serviceWith("b", Parameter{Key: "web", Type: ParameterText}))}, `{}`, "services: a and b can't share a cluster: of their parameters web.port and web, one lies inside the other."},
	} {
		var config map[string]any
		d := json.NewDecoder(strings.NewReader(c.config))
		d.UseNumber()
		if err := d.Decode(&config); err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, e := range c.check.Check(config) {
			got = append(got, e.Field+": "+e.Message)
		}
		if strings.Join(got, "\n") != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

func TestDefaultsOfAService(t *testing.T) {
	t.Parallel()
	s := serviceWith("nginx", Parameter{Key: "web.title", Default: "Hello"}, Parameter{Key: "web.port"}, Parameter{Key: "n", Default: json.Number("1")})
	s.DefaultConfig = map[string]any{"web": map[string]any{"port": "80"}}
	want := map[string]any{"web": map[string]any{"port": "80", "title": "Hello"}, "n": json.Number("1")}
	if got := s.Defaults(); !reflect.DeepEqual(got, want) {
		t.Errorf("the defaults are %v", got)
	}
	if len(s.DefaultConfig) != 1 || len(s.DefaultConfig["web"].(map[string]any)) != 1 {
		t.Errorf("the default config became %v", s.DefaultConfig)
	}
}

func TestSetConfigValue(t *testing.T) {
	t.Parallel()
	config := map[string]any{"a": map[string]any{"b": "1"}, "c": "2"}
	if got := SetConfigValue(config, "a.b", nil); !reflect.DeepEqual(got, map[string]any{"c": "2"}) {
		t.Errorf("without a.b it is %v", got)
	}
	if got := SetConfigValue(config, "a.d.e", true); !reflect.DeepEqual(got, map[string]any{"a": map[string]any{"b": "1", "d": map[string]any{"e": true}}, "c": "2"}) {
		t.Errorf("with a.d.e it is %v", got)
	}
	if got := SetConfigValue(config, "c.x", nil); !reflect.DeepEqual(got, config) {
		t.Errorf("without c.x it is %v", got)
	}
	if v, there := ConfigValue(config, "a.b"); v != "1" || !there {
		t.Errorf("a.b is %v", v)
	}
	if _, there := ConfigValue(config, "c.x"); there {
		t.Error("there is c.x")
	}
}

// TestSecretParametersAreHidden: whatever their names, and beside them what looks secret.
func TestSecretParametersAreHidden(t *testing.T) {
	t.Parallel()
	services := byName(serviceWith("redis", Parameter{Key: "redis.pin", Secret: true}, Parameter{Key: "redis.port"}))
	config := map[string]any{"redis": map[string]any{"pin": "12345678", "port": "1", "password": "abcdefgh"}, "pin": "87654321"}
	want := map[string]any{"redis": map[string]any{"pin": Redacted, "port": "1", "password": Redacted}, "pin": "87654321"}
	secrets := SecretKeysOf(services)
	if got := secrets.Mask(config); !reflect.DeepEqual(got, want) {
		t.Errorf("it shows %v", got)
	}
	texts, over := secrets.HiddenTexts(config)
	if !reflect.DeepEqual(texts, []string{"abcdefgh", "12345678"}) || over != "" {
		t.Errorf("logs hide %v, %q", texts, over)
	}
	if SecretKeysOf(byName(serviceWith("a"))) != nil {
		t.Error("a service without parameters has secrets")
	}
	if !secrets.HidesAt("redis.pin") || secrets.HidesAt("redis.port") || !secrets.HidesAt("x.token.y") {
		t.Error("HidesAt is wrong")
	}
}

func TestParametersOfServices(t *testing.T) {
	t.Parallel()
	list := ParametersOf(byName(
		serviceWith("b", Parameter{Key: "port", Type: ParameterNumber, Required: true, Default: "1"}),
		serviceWith("a", Parameter{Key: "port", Type: ParameterNumber, Label: "Port", Secret: true}, Parameter{Key: "x", Type: ParameterText})))
	if len(list) != 2 || list[0].Label != "Port" || !list[0].Required || !list[0].Secret || list[0].Default != "1" || strings.Join(list[0].Services(), " ") != "a b" || list[1].Key != "x" {
		t.Errorf("the parameters are %+v", list)
	}
}
