package loom_test

import (
	"strings"
	"testing"

	"loom/app/loom"
)

func claims(t *testing.T, text string) loom.Claims {
	t.Helper()
	c, err := loom.ParseClaims([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func holds(rule loom.IdentityRule, claims loom.Claims) bool {
	return len(loom.NewIdentityRules([]loom.IdentityRule{rule}).Match(claims)) == 1
}

// A rule needs all of its conditions; a claim that is missing, or an email that nobody verified,
// fulfills none.
func TestIdentityRules(t *testing.T) {
	t.Parallel()
	const person = `{"sub":"1","groups":["dev","ops"],"level":3,"staff":true,"email":"eve@example.com","email_verified":true,
		"realm_access":{"roles":["loom-admin"]},"https://example.com/team":"web","address":{"country":"CH"},"nothing":null,"lines":"a\nb"}`
	is, matches := loom.ConditionIs, loom.ConditionMatches
	for _, c := range []struct {
		claim  string
		op     loom.ConditionOp
		value  string
		expect bool
	}{
		{"groups", is, "ops", true}, {"groups", is, "op", false}, {"groups", is, "dev,ops", false}, {"groups", matches, "o.*", true}, {"groups", matches, "p", false},
		{"groups", matches, "dev|x", true}, {"groups", matches, "x|de", false}, {"lines", matches, "a.b", true}, {"lines", matches, "a", false},
		{"level", is, "3", true}, {"staff", is, "true", true}, {"email", is, "eve@example.com", true},
		{"realm_access.roles", is, "loom-admin", true}, {"https://example.com/team", is, "web", true}, {"address", is, "CH", false}, {"address.country", is, "CH", true},
		{"missing", matches, ".*", false}, {"nothing", matches, ".*", false}, {"groups", "like", "ops", false},
	} {
		rule := loom.IdentityRule{Conditions: []loom.Condition{{Claim: c.claim, Op: c.op, Value: c.value}}}
		if got := holds(rule, claims(t, person)); got != c.expect {
			t.Errorf("%s %s %s holds: %v, want %v", c.claim, c.op, c.value, got, c.expect)
		}
		rule.Conditions = append(rule.Conditions, loom.Condition{Claim: "sub", Op: is, Value: "2"})
		if holds(rule, claims(t, person)) {
			t.Errorf("%s %s %s holds together with a condition that does not", c.claim, c.op, c.value)
		}
	}
	email := loom.Condition{Claim: "email", Op: is, Value: "eve@example.com"}
	for _, text := range []string{`{"email":"eve@example.com"}`, `{"email":"eve@example.com","email_verified":false}`, `{"email":"eve@example.com","email_verified":"no"}`} {
		if email.Holds(claims(t, text)) {
			t.Errorf("an email counts that is not verified: %s", text)
		}
	}
	if holds(loom.IdentityRule{}, claims(t, person)) {
		t.Error("a rule without conditions holds")
	}
}

func TestIdentityRulesAreChecked(t *testing.T) {
	t.Parallel()
	good := loom.Condition{Claim: "groups", Op: loom.ConditionIs, Value: "dev"}
	many := make([]loom.IdentityRule, loom.MaxIdentityRules+1)
	for name, c := range map[string]struct {
		rules []loom.IdentityRule
		field string
	}{
		"good":            {[]loom.IdentityRule{{Conditions: []loom.Condition{good}}}, ""},
		"none":            {[]loom.IdentityRule{{}}, "rules[0].conditions"},
		"too many":        {[]loom.IdentityRule{{Conditions: []loom.Condition{good, good, good, good, good, good}}}, "rules[0].conditions"},
		"too many rules":  {many, "rules"},
		"no claim":        {[]loom.IdentityRule{{Conditions: []loom.Condition{{Op: loom.ConditionIs, Value: "x"}}}}, "rules[0].conditions[0].claim"},
		"no value":        {[]loom.IdentityRule{{Conditions: []loom.Condition{{Claim: "x", Op: loom.ConditionIs}}}}, "rules[0].conditions[0].value"},
		"no comparison":   {[]loom.IdentityRule{{Conditions: []loom.Condition{{Claim: "x", Value: "y"}}}}, "rules[0].conditions[0].op"},
		"bad expression":  {[]loom.IdentityRule{{Conditions: []loom.Condition{{Claim: "x", Op: loom.ConditionMatches, Value: "(a"}}}}, "rules[0].conditions[0].value"},
		"end of group":    {[]loom.IdentityRule{{Conditions: []loom.Condition{{Claim: "x", Op: loom.ConditionMatches, Value: "a)|(.*"}}}}, "rules[0].conditions[0].value"},
		"backtracking":    {[]loom.IdentityRule{{Conditions: []loom.Condition{{Claim: "x", Op: loom.ConditionMatches, Value: "(a+)+$"}}}}, ""},
		"long expression": {[]loom.IdentityRule{{Conditions: []loom.Condition{{Claim: "x", Op: loom.ConditionMatches, Value: strings.Repeat("a", 256)}}}}, "rules[0].conditions[0].value"},
	} {
		errs := loom.CheckIdentityRules(c.rules)
		if c.field == "" && len(errs) > 0 || c.field != "" && (len(errs) != 1 || errs[0].Field != c.field) {
			t.Errorf("%s: %v, want an error at %q", name, errs, c.field)
		}
	}
}

func TestClaimsAreBounded(t *testing.T) {
	t.Parallel()
	for _, text := range []string{``, `[]`, `null`, `"x"`, `{"a":1`, `{"groups":["` + strings.Repeat("x", loom.MaxClaims) + `"]}`} {
		if _, err := loom.ParseClaims([]byte(text)); loom.AsError(err).Kind != loom.Invalid {
			t.Errorf("claims %.20q: %v", text, err)
		}
	}
}
