package conformance

import (
	"fmt"
	"strings"
	"testing"

	"example.com/sample-controller/internal/testing/suite"
)

func TestTokenOfTheDeployedControllerLivesForAnHour(t *testing.T) {
	template := suite.Deploy(t, deployDir, nil).Spec.Template.Spec
	mounted := template.Volumes[0].Projected.Sources[0].ServiceAccountToken
	if template.AutomountServiceAccountToken == nil || *template.AutomountServiceAccountToken ||
		mounted.Audience != "" || *mounted.ExpirationSeconds > 3600 {
		t.Errorf("the Pod mounts the token %+v; want only one for the API server, for an hour",
			template.Volumes)
	}
}

func TestDeployedPodsMeetTheRestrictedStandard(t *testing.T) {
	suite.PodsMeetTheRestrictedStandard(t, deployDir)
}

func TestRolesOfUsersIncludeFoos(t *testing.T) {
	n := newNamespace(t)
	suite.Deploy(t, deployDir, nil)
	tests := []struct{ verb, subresource, roles string }{
		{"list", "", "view edit admin"},
		{"get", "scale", "view edit admin"},
		{"create", "", "edit admin"},
		{"deletecollection", "", "edit admin"},
		{"patch", "scale", "edit admin"},
		{"patch", "status", "admin"},
		{"update", "finalizers", "admin"},
	}
	for _, role := range []string{"view", "edit", "admin"} {
		n.Kubectl("create", "rolebinding", role, "--clusterrole="+role, "--user="+role)
		for _, test := range tests {
			want := "no"
			if strings.Contains(test.roles, role) {
				want = "yes"
			}
			what := fmt.Sprintf("with role %s, may %s foos/%s: %s", role, test.verb, test.subresource, want)
			suite.Eventually(t, what, func() (bool, string) {
				answer, _ := n.TryKubectl("", "auth", "can-i", test.verb, "foos",
					"--subresource="+test.subresource, "--as="+role) // it fails if the answer is no
				return strings.HasPrefix(answer, want), answer
			})
		}
	}
	// Users can grant only permissions that they have. The admin of a namespace has all of these.
	n.Kubectl("create", "rolebinding", "of-the-controller", "--as=admin",
		"--clusterrole="+deployedName, "--serviceaccount="+deployedName+":"+deployedName)
}
