package web

import (
	"context"
	"errors"

	"loom/app/catalog"
	"loom/app/lifecycle"
	"loom/app/loom"
	"loom/views/ui"
)

// scriptButton leads an administrator from a task to the script that it runs, where that
// is a plugin resource: the version in use, else the newest. Nil for others.
func (s *Server) scriptButton(ctx context.Context, actor loom.Actor, v lifecycle.ClusterView, t loom.Task) (*ui.ButtonModel, error) {
	action := v.Services[t.Service].Provisioner.Actions[t.Action]
	script := action.Fields["script"]
	if !actor.IsAdmin() || script == "" {
		return nil, nil
	}
	ref := loom.ResourceRef{Kind: string(loom.KindAutomatorType), Plugin: action.Type, Type: "scripts", Name: script}
	versions, err := s.Catalog.Resources(ctx, actor, catalog.ResourceFilter{ResourceRef: ref})
	if errors.Is(err, loom.NotFound) || errors.Is(err, loom.Invalid) || err == nil && len(versions) == 0 {
		return nil, nil // it comes with the plugin, or is a path on the machine
	}
	if err != nil {
		return nil, err
	}
	shown := versions[len(versions)-1]
	for _, version := range versions {
		if version.Live {
			shown = version
		}
	}
	return &ui.ButtonModel{Label: "Edit " + script, Icon: "edit", Href: resourceURL(shown)}, nil
}
