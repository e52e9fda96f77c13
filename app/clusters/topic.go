package clusters

import (
	"context"
	"strconv"
	"strings"

	"loom/app/loom"
)

// MaySeeTopic returns NotFound unless the actor may follow a topic of live
// updates. Topics without ids are those of the actor's tenant,
// "system" is for superadmins.
func (u *Clusters) MaySeeTopic(ctx context.Context, actor loom.Actor, topic string) error {
	if err := actor.May(loom.See, actor.Mine()); err != nil {
		return err
	}
	unknown := loom.NewError(loom.NotFound, "There is no topic “%.60s”.", topic)
	switch topic {
	case "clusters", "tenant", "user:me":
		return nil
	case "system":
		if actor.May(loom.Install.Reading(), loom.Installation) == nil {
			return nil
		}
		return unknown
	}
	kind, rest, _ := strings.Cut(topic, ":")
	parts := strings.Split(rest, "/")
	id, ok := loom.ParseClusterID(parts[0])
	wanted := map[string]int{"cluster": 1, "op": 2, "log": 4}[kind]
	if !ok || len(parts) != wanted {
		return unknown
	}
	for _, part := range parts[1:] {
		if n, err := strconv.Atoi(part); err != nil || n <= 0 {
			return unknown
		}
	}
	err := u.see(ctx, actor, id)
	if isNotFound(err) {
		return unknown
	}
	return err
}
