package wire_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"loom/app/api/wire"
	"loom/app/lenient"
	"loom/app/loom"
)

// TestDescribedMembersAreRead gives each reader a body in which every described member has a
// value that it cannot have: a member without an error is one that nobody reads.
func TestDescribedMembersAreRead(t *testing.T) {
	t.Parallel()
	change := func(kind loom.ChangeKind) func(body []byte) error {
		return func(body []byte) error { _, err := wire.ReadChange(kind, body); return err }
	}
	for name, c := range map[string]struct {
		members []string
		unread  []string
		read    func(body []byte) error
	}{
		"ClusterCreate": {lenient.Names[wire.ClusterCreate](), nil, func(b []byte) error { _, err := wire.ReadCreate(b); return err }},
		"Deprecation":   {lenient.Names[wire.Deprecation](), nil, func(b []byte) error { _, err := wire.ReadDeprecation(b); return err }},
		"ClusterEdit":   {lenient.Names[wire.ClusterEdit](), nil, func(b []byte) error { _, err := wire.ReadEdit(b); return err }},
		"ExpiryChange":  {lenient.Names[wire.ExpiryChange](), nil, func(b []byte) error { _, err := wire.ReadExpiry(b); return err }},
		"OperationRequest": {lenient.Names[wire.OperationRequest](), nil, func(b []byte) error {
			_, err := wire.ReadOperation(loom.ClusterDelete, b)
			return err
		}},
		"ClusterDelete": {lenient.Names[wire.ClusterDelete](), nil, func(b []byte) error { _, err := wire.ReadDelete(b); return err }},
		"Configure":     {lenient.Names[wire.Configure](), nil, change(loom.ChangeConfigure)},
		"ServicesAdd":   {lenient.Names[wire.ServicesAdd](), nil, change(loom.ChangeAddServices)},
		"Expand":        {lenient.Names[wire.Expand](), nil, change(loom.ChangeExpand)},
		"Shrink":        {lenient.Names[wire.Shrink](), nil, change(loom.ChangeShrink)},
		"Upgrade":       {lenient.Names[wire.Upgrade](), nil, change(loom.ChangeUpgrade)},
		"Update":        {lenient.Names[wire.Update](), nil, change(loom.ChangeUpdate)},
		"Resize":        {lenient.Names[wire.Resize](), nil, change(loom.ChangeResize)},
		"Repair":        {lenient.Names[wire.Repair](), nil, change(loom.ChangeRepair)},
		"Retry":         {lenient.Names[wire.Retry](), nil, change(loom.ChangeRetry)},
		"Skip":          {lenient.Names[wire.Skip](), nil, func(b []byte) error { _, err := wire.ReadSkip(b); return err }},
		"NodeWrite":     {lenient.Names[wire.NodeWrite](), []string{"actions"}, func(b []byte) error { _, err := wire.ReadNode(b); return err }}, // history is what happened
		"NodeQuery":     {lenient.Names[wire.NodeQueryBody](), nil, func(b []byte) error { _, err := wire.ReadNodeQuery(b); return err }},
		"FleetRequest":  {lenient.Names[wire.FleetRequest](), nil, func(b []byte) error { _, err := wire.ReadFleet(b); return err }},
		"PreviewApply":  {lenient.Names[wire.PreviewApply](), nil, func(b []byte) error { _, err := wire.ReadApply(b, ""); return err }},
		"TokenCreate":   {lenient.Names[wire.TokenCreate](), nil, func(b []byte) error { _, err := wire.ReadToken(b); return err }},
		"TenantWrite":   {lenient.Names[wire.TenantWrite](), nil, func(b []byte) error { _, err := wire.ReadTenant(b); return err }},
		"HookWrite":     {lenient.Names[wire.HookWrite](), nil, func(b []byte) error { _, err := wire.ReadHook(b); return err }},
		"UserCreate":    {lenient.Names[wire.UserCreate](), nil, func(b []byte) error { _, err := wire.ReadUser(b); return err }},
		"UserEdit":      {lenient.Names[wire.UserEdit](), nil, func(b []byte) error { _, err := wire.ReadUserChange(b); return err }},
		"SettingsEdit":  {lenient.Names[wire.SettingsEdit](), nil, func(b []byte) error { _, err := wire.ReadSettings(b); return err }},
	} {
		body := map[string]any{}
		for _, member := range c.members {
			body[member] = []any{[]any{1}}
		}
		text, err := json.Marshal(body)
		if err != nil || len(c.members) == 0 {
			t.Fatal(name, err, c.members)
		}
		wrong := loom.AsError(c.read(text)).Fields
		for _, member := range c.members {
			found := slices.ContainsFunc(wrong, func(e loom.FieldError) bool { return e.Field == member || strings.HasPrefix(e.Field, member+"[") })
			if found == slices.Contains(c.unread, member) {
				t.Errorf("%s: is %s read? %v", name, member, found)
			}
		}
	}
}
