package loom_test

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"

	"loom/app/loom"
)

func TestFactsAreSplitAndJoined(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ facts, open, hidden string }{
		{`{}`, `{}`, `{}`},
		{`{"providerid":"m1","disks":[1,2]}`, `{"providerid":"m1","disks":[1,2]}`, `{}`},
		{`{"ssh-auth":null,"providerid":null}`, `{"ssh-auth":null,"providerid":null}`, `{}`},
		{`{"ssh-auth":{"user":"root","identityfile":"ssh_keys/a"}}`, `{"ssh-auth":{"user":"root","identityfile":"ssh_keys/a"}}`, `{}`},
		{`{"ssh-auth":{"user":"root","password":"x"}}`, `{"ssh-auth":{"user":"root"}}`, `{"ssh-auth":{"password":"x"}}`},
		{`{"ssh-auth":{"user":"root","password":"","key":"K","pin":7}}`, `{"ssh-auth":{"user":"root","password":""}}`, `{"ssh-auth":{"key":"K","pin":7}}`},
		{`{"ssh-auth":"text"}`, `{}`, `{"ssh-auth":"text"}`},
		{`{"db":{"port":1,"admin":{"password":"x","name":"n"}}}`, `{"db":{"port":1,"admin":{"name":"n"}}}`, `{"db":{"admin":{"password":"x"}}}`},
		{`{"api_token":"x","secrets":{"a":1}}`, `{}`, `{"api_token":"x","secrets":{"a":1}}`},
		{`{"list":[{"name":"a","password":"x"}],"plain":[{"name":"a"}]}`, `{"plain":[{"name":"a"}]}`, `{"list":[{"name":"a","password":"x"}]}`},
	} {
		facts, open, hidden := tree(t, c.facts), tree(t, c.open), tree(t, c.hidden)
		o, h := loom.SplitFacts(facts)
		if !reflect.DeepEqual(o, open) || !reflect.DeepEqual(h, hidden) {
			t.Errorf("%s: open %v, hidden %v", c.facts, o, h)
		}
		if joined := loom.JoinFacts(o, h); !reflect.DeepEqual(joined, facts) {
			t.Errorf("%s: joined %v", c.facts, joined)
		}
		if !reflect.DeepEqual(facts, tree(t, c.facts)) {
			t.Errorf("%s was changed", c.facts)
		}
	}
	if _, h := loom.SplitFacts(map[string]any{"ssh-auth": map[string]string{"user": "u", "password": "x"}}); h["ssh-auth"] == nil {
		t.Error("a map of texts is not looked into")
	}
}

func tree(t *testing.T, text string) map[string]any {
	t.Helper()
	var v map[string]any
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatal(err)
	}
	return v
}

func TestRevealFact(t *testing.T) {
	t.Parallel()
	fact, err := loom.RevealFact("db", loom.NewSecret(`{"password": "p", "ports": ["5433", "b"], "on": true, "none": null}`))
	if err != nil || !reflect.DeepEqual(fact, tree(t, `{"db": {"password": "p", "ports": ["5433", "b"], "on": true, "none": null}}`)) {
		t.Errorf("%v, %v", fact, err)
	}
	texts := loom.TextsIn(fact)
	slices.Sort(texts)
	if !slices.Equal(texts, []string{"5433", "b", "p"}) {
		t.Errorf("texts %q", texts)
	}
	if fact, err := loom.RevealFact("pin", loom.NewSecret("12345678901234567890")); err != nil || !slices.Equal(loom.TextsIn(fact), []string{"12345678901234567890"}) {
		t.Errorf("a number is a text with all its digits: %v, %v", fact, err)
	}
	if _, err := loom.RevealFact("db", loom.NewSecret(`{"password": hunter2`)); err == nil || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("what is no JSON is refused without quoting it: %v", err)
	}
}
