package planner

import (
	"fmt"

	"loom/app/loom"
)

// Text and DOT write a plan whose nodes go by their numbers.
func Text(plan loom.Plan) string { return TextBy(plan, byNumber) }

func DOT(plan loom.Plan) string { return DOTBy(plan, byNumber) }

func byNumber(t loom.PlanTask) string { return fmt.Sprint(t.NodeNumber) }
