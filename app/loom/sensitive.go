package loom

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// secretWords are parts of keys that hold secrets; keys of every task are looked at.
var secretWords = []string{"password", "passwd", "secret", "token", "private_key", "api_key"}

// hasSecretWord reports whether a key has one of secretWords in it, in any case.
func hasSecretWord(key string) bool {
	key = strings.ToLower(key)
	return slices.ContainsFunc(secretWords, func(word string) bool { return strings.Contains(key, word) })
}

// LooksSecret reports whether a key looks like the name of a secret. It decides where no schema does, and what is masked in
// logs, audit, previews and events. The setting maxTokenDays only sounds like one.
func LooksSecret(key string) bool { return hasSecretWord(key) && key != "maxTokenDays" }

// Limits of the texts that somebody's config or service hides in the logs of a task: each
// is looked for in each line, in several forms. Shorter ones would hide half of every text.
const (
	maxHiddenTexts = 1000
	maxHiddenBytes = 64 << 10
	minHiddenText  = 8
)

// SecretKeys are the keys of a config whose values are secret whatever their names say: those of
// secret parameters. Nil has none, and its methods go by names alone.
type SecretKeys struct {
	// whole says that the value here is secret.
	whole bool
	below map[string]*SecretKeys
}

// SecretKeysOf returns the keys of the secret parameters of services, nil for none.
func SecretKeysOf(services ...map[string]Service) *SecretKeys {
	var keys *SecretKeys
	for _, some := range services {
		for _, s := range some {
			for i := range s.Parameters {
				if !s.Parameters[i].Secret {
					continue
				}
				if keys == nil {
					keys = &SecretKeys{}
				}
				keys.add(s.Parameters[i].Key)
			}
		}
	}
	return keys
}

func (s *SecretKeys) add(path string) {
	for key := range strings.SplitSeq(path, ".") {
		if s.below == nil {
			s.below = map[string]*SecretKeys{}
		}
		if s.below[key] == nil {
			s.below[key] = &SecretKeys{}
		}
		s = s.below[key]
	}
	s.whole = true
}

// Below returns the secret keys of the value of a key.
func (s *SecretKeys) Below(key string) *SecretKeys {
	if s == nil {
		return nil
	}
	return s.below[key]
}

// Hides reports whether the value of a key is secret, by its name or by a parameter.
func (s *SecretKeys) Hides(key string) bool {
	below := s.Below(key)
	return LooksSecret(key) || below != nil && below.whole
}

// HidesAt reports whether the value at a dotted path is secret.
func (s *SecretKeys) HidesAt(path string) bool {
	for key := range strings.SplitSeq(path, ".") {
		if s.Hides(key) {
			return true
		}
		s = s.Below(key)
	}
	return false
}

// HiddenTexts gives the texts of a config that logs do not show: those below secret keys. It
// ends at the limits, and over names the key that went beyond them.
func (s *SecretKeys) HiddenTexts(config map[string]any) (texts []string, over string) {
	h := hiddenTexts{}
	h.walk(config, false, s)
	return h.texts, h.over
}

// HiddenTexts gives the texts of a JSON value that logs do not show: those below keys that
// look secret, or with all every text. Lines of a text count as texts. It ends at the limits,
// and over names the key that went beyond them.
func HiddenTexts(value any, all bool) (texts []string, over string) {
	h := hiddenTexts{}
	h.walk(value, all, nil)
	return h.texts, h.over
}

type hiddenTexts struct {
	at          JSONPath
	texts       []string
	count, size int
	over        string
}

func (h *hiddenTexts) walk(value any, secret bool, keys *SecretKeys) {
	if h.over != "" {
		return
	}
	switch v := value.(type) {
	case map[string]any:
		for _, key := range sortedKeys(v) { // the same ones each time
			h.at.Key(key)
			h.walk(v[key], secret || keys.Hides(key), keys.Below(key))
			h.at.Up()
		}
	case []any:
		for _, item := range v {
			h.walk(item, secret, nil)
		}
	case string:
		h.add(v, secret)
	case json.Number:
		h.add(v.String(), secret)
	}
}

func (h *hiddenTexts) add(text string, secret bool) {
	if !secret || len(text) < minHiddenText {
		return
	}
	h.count += 1 + strings.Count(text, "\n")
	h.size += len(text)
	if h.count > maxHiddenTexts || h.size > maxHiddenBytes {
		h.over = h.at.Keys()
		return
	}
	h.texts = append(h.texts, text)
}

// checkHidden refuses a config with more secrets than tasks can hide in their logs.
func checkHidden(field string, config map[string]any) []FieldError {
	_, over := HiddenTexts(config, false)
	return tooManyHidden(field, over)
}

// tooManyHidden is the error for a config that has too many secrets at a key, nothing for "".
func tooManyHidden(field, over string) []FieldError {
	if over == "" {
		return nil
	}
	return []FieldError{{field, fmt.Sprintf("With “%.100s” the config has more than %d texts, or more than %d bytes, below keys that look secret, such as “token”. "+
		"Take some out, for example into a plugin resource, or name the key otherwise.", over, maxHiddenTexts, maxHiddenBytes)}}
}

// MaskSecrets copies a JSON value (maps, slices, scalars) with the values of
// keys that look secret replaced by "[redacted]", at any depth. Empty texts and
// nulls stay, so that one sees that nothing is set.
func MaskSecrets(value any) any { return (*SecretKeys)(nil).mask(value) }

// Mask is MaskSecrets for a config.
func (s *SecretKeys) Mask(config map[string]any) map[string]any {
	if config == nil {
		return nil
	}
	out, _ := s.mask(config).(map[string]any)
	return out
}

func (s *SecretKeys) mask(value any) any {
	switch v := value.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for key, item := range v {
			if s.Hides(key) && isSet(item) {
				out[key] = Redacted
				continue
			}
			out[key] = s.Below(key).mask(item)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, item := range v {
			out[i] = (*SecretKeys)(nil).mask(item)
		}
		return out
	}
	return value
}
