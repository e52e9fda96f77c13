package loom

import "maps"

// MergePatch returns a JSON object with a merge patch (RFC 7386) laid over it, and changes
// neither: null removes a member, objects merge, everything else replaces.
func MergePatch(object, patch map[string]any) map[string]any {
	out := make(map[string]any, len(object)+len(patch))
	maps.Copy(out, object)
	for key, value := range patch {
		if value == nil {
			delete(out, key)
			continue
		}
		if changes, ok := value.(map[string]any); ok {
			old, _ := out[key].(map[string]any)
			value = MergePatch(old, changes)
		}
		out[key] = value
	}
	return out
}

// DiffPatch returns the merge patch that leads from one JSON object to another. Values
// are equal when their texts are: 1 and 1.0 differ. A member that is null cannot be added
// by a merge patch.
func DiffPatch(from, to map[string]any) map[string]any {
	patch := map[string]any{}
	for key := range from {
		if _, stays := to[key]; !stays {
			patch[key] = nil
		}
	}
	for key, now := range to {
		old, had := from[key]
		left, leftOK := old.(map[string]any)
		right, rightOK := now.(map[string]any)
		switch {
		case had && leftOK && rightOK:
			if inner := DiffPatch(left, right); len(inner) > 0 {
				patch[key] = inner
			}
		case !had || JSONText(old) != JSONText(now):
			patch[key] = now
		}
	}
	return patch
}
