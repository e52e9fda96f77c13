package loom

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// Limits of identity providers.
const (
	MaxIdentityProviders = 20
	MaxIdentityRules     = 200
	MaxConditions        = 5
	// MaxClaims is how large the claims of an identity may be, in bytes of JSON.
	MaxClaims = 16 << 10
	maxClaim  = 255 // characters of a claim's name, and of the value in a condition
)

// IdentityProvider is a service of an organization that people sign in with, by OpenID Connect.
type IdentityProvider struct {
	// ID is made up. It is in the addresses that the provider knows of Loom.
	ID string
	// Tenant is where its rules find groups; those of SuperTenant find them in all tenants.
	Tenant   TenantID
	Name     string
	Issuer   string // URL, exactly as the provider has it in its tokens
	ClientID string
	// UserClaim is the claim that names new users.
	UserClaim string
	// SubjectClaim is the claim that stands for a person: "sub", or "oid" as Entra has it.
	SubjectClaim string
	// MaxAgeDays is how long tokens of its users work after a sign-in.
	MaxAgeDays int
	Enabled    bool
	Created    time.Time
	// Users counts who is connected with an identity of it, Rules its rules.
	Users, Rules int
}

// SubjectClaims are the claims that can stand for a person.
var SubjectClaims = []string{"sub", "oid"}

// Source returns how its rules make somebody a member of a group.
func (p *IdentityProvider) Source() MemberSource { return MemberSource("rule:" + p.ID) }

// Global reports whether people of all tenants sign in with it.
func (p *IdentityProvider) Global() bool { return p.Tenant == SuperTenant }

// Claims are what an identity provider says about a person: JSON, with numbers as json.Number.
type Claims map[string]any

// ParseClaims reads claims. Invalid for what is no JSON object, and for more than MaxClaims.
func ParseClaims(text []byte) (Claims, error) {
	if len(text) > MaxClaims {
		return nil, NewError(Invalid, "The claims take %d bytes, and Loom reads at most %d. Let the provider send fewer groups.", len(text), MaxClaims)
	}
	if err := ScanJSON(text, 0); err != nil {
		return nil, NewError(Invalid, "The claims are no JSON that Loom reads.")
	}
	decoder := json.NewDecoder(strings.NewReader(string(text)))
	decoder.UseNumber()
	var claims Claims
	if err := decoder.Decode(&claims); err != nil || claims == nil {
		return nil, NewError(Invalid, "The claims are no JSON object.")
	}
	return claims, nil
}

// Values returns the values of a claim as texts: one for a text, a number or a boolean, those of
// a list, none for everything else. Dots lead to inner claims, unless a claim has them in its
// name. An email that is not verified has none.
func (c Claims) Values(name string) []string {
	if name == "email" && !slices.Contains(c.Values("email_verified"), "true") {
		return nil
	}
	value, there := map[string]any(c)[name]
	if !there {
		value, _ = ConfigValue(c, name)
	}
	list, isList := value.([]any)
	if !isList {
		list = []any{value}
	}
	var texts []string
	for _, item := range list {
		switch item := item.(type) {
		case string:
			texts = append(texts, item)
		case json.Number, bool:
			texts = append(texts, fmt.Sprint(item))
		}
	}
	return texts
}

// Text returns the value of a claim that has exactly one, "" for others.
func (c Claims) Text(name string) string {
	if values := c.Values(name); len(values) == 1 {
		return values[0]
	}
	return ""
}

// ConditionOp is how the value of a condition is compared.
type ConditionOp string

// The comparisons: the same text, or a regular expression (RE2) for all of it.
const (
	ConditionIs      ConditionOp = "is"
	ConditionMatches ConditionOp = "matches"
)

// Condition holds for claims with a value.
type Condition struct {
	Claim string      `json:"claim"`
	Op    ConditionOp `json:"op"`
	Value string      `json:"value"`
}

// pattern compiles the regular expression of a condition, for all of a value.
func (c Condition) pattern() (*regexp.Regexp, error) {
	if _, err := regexp.Compile(c.Value); err != nil { // it might end the group around it
		return nil, err
	}
	return regexp.Compile(`^(?s:` + c.Value + `)$`)
}

// Holds reports whether a condition holds for claims. A claim that is missing fulfills none.
func (c Condition) Holds(claims Claims) bool {
	var pattern *regexp.Regexp
	if c.Op == ConditionMatches {
		pattern, _ = c.pattern() // one that is wrong matches nothing
	}
	return c.holds(claims.Values(c.Claim), pattern)
}

func (c Condition) holds(values []string, pattern *regexp.Regexp) bool {
	switch c.Op {
	case ConditionIs:
		return slices.Contains(values, c.Value)
	case ConditionMatches:
		return pattern != nil && slices.ContainsFunc(values, pattern.MatchString)
	}
	return false
}

// IdentityRule makes those for whose claims all conditions hold members of a group.
type IdentityRule struct {
	Conditions []Condition
	Group      int64
	// Tenant and GroupName are those of the group, as it is stored.
	Tenant    TenantID
	GroupName string
}

// IdentityRules are rules that are asked about many people.
type IdentityRules struct {
	rules    []IdentityRule
	patterns map[Condition]*regexp.Regexp
}

// NewIdentityRules prepares rules.
func NewIdentityRules(rules []IdentityRule) *IdentityRules {
	prepared := &IdentityRules{rules, map[Condition]*regexp.Regexp{}}
	for _, r := range rules {
		for _, c := range r.Conditions {
			if c.Op == ConditionMatches {
				prepared.patterns[c], _ = c.pattern() // one that is wrong matches nothing
			}
		}
	}
	return prepared
}

// Match returns the places of the rules all of whose conditions hold for claims.
func (p *IdentityRules) Match(claims Claims) (places []int) {
	values := map[string][]string{}
	for i, r := range p.rules {
		holds := func(c Condition) bool {
			of, known := values[c.Claim]
			if !known {
				of = claims.Values(c.Claim)
				values[c.Claim] = of
			}
			return c.holds(of, p.patterns[c])
		}
		if len(r.Conditions) > 0 && !slices.ContainsFunc(r.Conditions, func(c Condition) bool { return !holds(c) }) {
			places = append(places, i)
		}
	}
	return places
}

// CheckIdentityRules finds what is wrong with the conditions of rules, by fields "rules[i]…".
func CheckIdentityRules(rules []IdentityRule) []FieldError {
	if len(rules) > MaxIdentityRules {
		return []FieldError{{"rules", fmt.Sprintf("A provider has at most %d rules.", MaxIdentityRules)}}
	}
	var errs []FieldError
	for i, r := range rules {
		at := fmt.Sprintf("rules[%d]", i)
		if n := len(r.Conditions); n < 1 || n > MaxConditions {
			errs = append(errs, FieldError{at + ".conditions", fmt.Sprintf("Enter 1–%d conditions.", MaxConditions)})
		}
		for j, c := range r.Conditions {
			at := fmt.Sprintf("%s.conditions[%d].", at, j)
			if n := utf8.RuneCountInString(c.Claim); n < 1 || n > maxClaim {
				errs = append(errs, FieldError{at + "claim", "Enter the name of a claim, such as groups."})
			}
			if n := utf8.RuneCountInString(c.Value); n < 1 || n > maxClaim {
				errs = append(errs, FieldError{at + "value", fmt.Sprintf("Enter a value of 1–%d characters.", maxClaim)})
				continue
			}
			switch c.Op {
			case ConditionIs:
			case ConditionMatches:
				if _, err := c.pattern(); err != nil {
					errs = append(errs, FieldError{at + "value", "This is no regular expression (RE2)."})
				}
			default:
				errs = append(errs, FieldError{at + "op", "Choose “is” or “matches”."})
			}
		}
	}
	return errs
}

// Identity is a person as an identity provider knows them.
type Identity struct {
	Provider     string // id
	ProviderName string
	Subject      string
	Claims       Claims
	Seen         time.Time // of the last sign-in
	// Accounts are the users that sign in with it.
	Accounts []Account
}
