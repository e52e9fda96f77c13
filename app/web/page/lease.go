package page

import (
	"fmt"
	"strconv"
	"strings"

	"loom/app/loom"
)

// LeaseText says how long a lease is and how long it may become.
func LeaseText(l loom.LeaseRule) string {
	if l.Initial == 0 {
		return "no expiry"
	}
	text := loom.Duration(l.Initial)
	if l.Max > l.Initial {
		text += ", up to " + loom.Duration(l.Max)
	}
	return text
}

// leaseUnits of a duration in forms, in milliseconds.
var leaseUnits = map[byte]int64{'w': 7 * 86_400_000, 'd': 86_400_000, 'h': 3_600_000, 'm': 60_000, 's': 1000}

// unitWords are other spellings of units, without the s of more than one.
var unitWords = map[string]byte{"week": 'w', "wk": 'w', "day": 'd', "hour": 'h', "hr": 'h', "minute": 'm', "min": 'm', "second": 's', "sec": 's'}

// leaseUnit gives the milliseconds of a unit, 0 for what is none.
func leaseUnit(word string) int64 {
	if len(word) == 1 {
		return leaseUnits[word[0]]
	}
	return leaseUnits[unitWords[strings.TrimSuffix(word, "s")]]
}

// ParseLease reads "7d", "12h", "1d 6h 30m" or "2 hours"; "0" is for ever.
func ParseLease(text string) (int64, bool) {
	text = strings.ToLower(strings.ReplaceAll(text, " ", ""))
	if text == "0" {
		return 0, true
	}
	var total int64
	for text != "" {
		end := strings.IndexFunc(text, func(r rune) bool { return r < '0' || r > '9' })
		if end <= 0 || end > 9 {
			return 0, false
		}
		next := strings.IndexFunc(text[end:], func(r rune) bool { return r >= '0' && r <= '9' })
		if next < 0 {
			next = len(text) - end
		}
		unit := leaseUnit(text[end : end+next])
		if unit == 0 {
			return 0, false
		}
		n, err := strconv.ParseInt(text[:end], 10, 64)
		if err != nil {
			return 0, false
		}
		total += n * unit
		text = text[end+next:]
	}
	return total, total > 0
}

// WriteLease is the reverse of parseLease; the template's own is the empty text.
func WriteLease(millis int64) string {
	if millis == loom.TemplateLease {
		return ""
	}
	if millis == 0 {
		return "0"
	}
	var parts []string
	for _, u := range "dhms" {
		if n := millis / leaseUnits[byte(u)]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d%c", n, u))
			millis %= leaseUnits[byte(u)]
		}
	}
	return strings.Join(parts, " ")
}
