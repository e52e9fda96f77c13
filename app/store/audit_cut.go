package store

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"slices"

	"loom/app/loom"
)

const (
	// maxAuditBody is how much the audit keeps of what a thing was, and of what it became,
	// in bytes of JSON.
	maxAuditBody = 16 << 10
	// maxAuditDepth is how deep the large part of a thing is looked for.
	maxAuditDepth = 8
	// leastAuditPart is kept as it is: what would stand in its place takes as much.
	leastAuditPart = 128
)

// cutBody gives a masked value with its largest parts replaced by their length and digest,
// so that it is no longer than maxAuditBody, and its JSON.
func cutBody(tree any) ([]byte, error) {
	text, err := json.Marshal(tree)
	if err != nil || len(text) <= maxAuditBody {
		return text, err
	}
	cut, _, err := cutPart(tree, text, maxAuditBody, maxAuditDepth)
	if err != nil {
		return nil, err
	}
	return json.Marshal(cut)
}

// cutPart gives what is kept of a part in at most that many bytes, with the length of its JSON.
func cutPart(part any, text []byte, most, depth int) (any, int, error) {
	if len(text) <= max(most, leastAuditPart) {
		return part, len(text), nil
	}
	members, ok := part.(map[string]any)
	if !ok || depth == 0 || most < leastAuditPart {
		return digest(text)
	}
	texts := make(map[string][]byte, len(members))
	for name, member := range members {
		var err error
		if texts[name], err = json.Marshal(member); err != nil {
			return nil, 0, err
		}
	}
	size, kept := len(text), maps.Clone(members)
	largest := slices.SortedFunc(maps.Keys(members), func(a, b string) int {
		return cmp.Or(len(texts[b])-len(texts[a]), cmp.Compare(a, b))
	})
	for _, name := range largest {
		was := len(texts[name])
		if size <= most || was <= leastAuditPart {
			break
		}
		member, is, err := cutPart(members[name], texts[name], most-(size-was), depth-1)
		if err != nil {
			return nil, 0, err
		}
		kept[name] = member
		size += is - was
	}
	if size > most {
		return digest(text)
	}
	return kept, size, nil
}

// digest tells one value from another without it.
func digest(text []byte) (any, int, error) {
	sum := sha256.Sum256(text)
	short := map[string]any{"bytes": len(text), "sha256": hex.EncodeToString(sum[:])}
	text, err := json.Marshal(short)
	return short, len(text), err
}

// keptWhole are what can be made again from the audit: catalog entries that were deleted.
func keptWhole(e loom.AuditEntry) bool {
	_, ok := e.Before.(loom.Entry)
	return ok && e.Verb == "delete"
}
