// Package lws explores the controller of LeaderWorkerSets.
package lws

import (
	"context"
	"fmt"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	api "sigs.k8s.io/lws/api/leaderworkerset/v1"
	"sigs.k8s.io/lws/pkg/controllers"

	"example.com/sample-controller/explore"
	"example.com/sample-controller/explore/board"
	"example.com/sample-controller/explore/board/manager"
)

func TestLeaderWorkerSet(t *testing.T) {
	const resource = "leaderworkersets.leaderworkerset.x-k8s.io/a"
	// Its webhook would set some of these fields.
	const lws = `{apiVersion: leaderworkerset.x-k8s.io/v1, kind: LeaderWorkerSet, metadata: {name: a},
		spec: {replicas: 2, networkConfig: {subdomainPolicy: Shared}, startupPolicy: LeaderCreated,
		rolloutStrategy: {type: RollingUpdate, rollingUpdateConfiguration:
		{maxUnavailable: 1, maxSurge: 0, partition: 0}}, leaderWorkerTemplate: {size: 2,
		restartPolicy: RecreateGroupOnPodRestart, workerTemplate: {metadata: {labels: {v: "1"}},
		spec: {containers: [{name: c, image: c}]}}}}}`
	board.Explore(t, "sigs.k8s.io/lws", explore.Controller{
		CRDs: []string{"config/crd/bases/*.yaml"},
		Run: manager.Run(api.AddToScheme, func(ctx context.Context, m ctrl.Manager) error {
			if err := controllers.SetupIndexes(m.GetFieldIndexer()); err != nil {
				return err
			}
			return controllers.NewLeaderWorkerSetReconciler(m.GetClient(), m.GetScheme(),
				m.GetEventRecorderFor("leaderworkerset")).SetupWithManager(m)
		}),
		Scenarios: []explore.Scenario{
			{Name: "scale", EndVaries: true, Steps: []explore.Step{explore.Create(lws),
				explore.Patch(resource, "spec: {replicas: 3}")}},
			{Name: "roll out", EndVaries: true, Steps: []explore.Step{explore.Create(lws), explore.Patch(resource,
				`spec: {leaderWorkerTemplate: {workerTemplate: {metadata: {labels: {v: "2"}}}}}`)}},
			{Name: "delete", Steps: []explore.Step{explore.Create(lws), explore.Delete(resource)}},
		},
		Eventually: func(now explore.State) (wrong []string) {
			lws := explore.Get[api.LeaderWorkerSet](now, "leaderworkersets.leaderworkerset.x-k8s.io", "a")
			sts, keys := explore.Get[appsv1.StatefulSet](now, "statefulsets.apps", "a"), map[string]int{}
			if lws == nil {
				return nil
			}
			if sts == nil || *sts.Spec.Replicas != *lws.Spec.Replicas {
				return []string{"the StatefulSet is not what is asked for"}
			}
			v := fmt.Sprintf("%q:%q", "v", lws.Spec.LeaderWorkerTemplate.WorkerTemplate.Labels["v"])
			for _, r := range explore.List[appsv1.ControllerRevision](now, "controllerrevisions.apps") {
				if keys[r.Labels[api.RevisionKey]]++; keys[r.Labels[api.RevisionKey]] == 2 {
					wrong = append(wrong, "several ControllerRevisions are equal")
				}
				if strings.Contains(string(r.Data.Raw), v) && !strings.HasPrefix(r.Name, "a-"+sts.Labels[api.RevisionKey]) {
					wrong = append(wrong, "the StatefulSet still has the revision of before")
				}
			}
			return wrong
		},
	}, known...)
}

var known = []board.Known{{
	What: "several ControllerRevisions are equal|the controller created . controllerrevisions", Verdict: "true",
	Why: "until there is a StatefulSet, each try creates a revision, and no later try deletes it: " +
		"`getOrCreateRevisionIfNonExist` looks for the revision of the StatefulSet, and `TruncateRevisions` " +
		"keeps all revisions that are equal",
}, {
	What: "revision of before", Verdict: "true",
	Why: "if the cache does not show the first revision, `getOrCreateRevisionIfNonExist` makes it anew from the " +
		"template of now, so `getUpdatedRevision` sees no change",
}}
