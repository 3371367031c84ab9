// SPDX-License-Identifier: Apache-2.0

package charts

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
	"helm.sh/helm/v3/pkg/strvals"
)

// row is a line of the table in docs/settings.md; its groups are the value of
// the chart if it is one, what else the chart takes, and the variable.
var row = regexp.MustCompile("(?m)^\\| (?:`([A-Za-z.]+)`)?([^`|]*) \\| (?:`--[a-z-]+`(?:<br>)?)?(?:`([A-Z_]+)`)? \\| .* \\| .* \\| .* \\|$")

// other is a value that differs from the chart's own, for those that are not
// true or false.
var other = map[string]string{
	"controller.metrics.port":                "9000",
	"controller.healthProbe.port":            "9001",
	"logLevel":                               "debug",
	"logOutputPaths":                         "[stdout, /var/log/karpenter]",
	"logErrorOutputPaths":                    "[stdout]",
	"settings.additionalNodePrice":           "0.03",
	"settings.additionalVCPUPrice":           `"0.001"`,
	"settings.preferencePremium":             "0.1",
	"settings.preferenceAllowance":           "0.2",
	"settings.nodeCountPremium":              `"0"`,
	"settings.maxSpotPoolShare":              `"0.2"`,
	"settings.rebalancePremium":              "0.05",
	"settings.consolidationPaybackTime":      "4h",
	"settings.consolidationSavingsThreshold": "0.2",
	"settings.batchMaxDuration":              "20s",
	"settings.batchIdleDuration":             "2s",
	"settings.preferencePolicy":              "Ignore",
	"controller.metrics.certDir":             "/tls, secure: true", // rejected alone
	"settings.minValuesPolicy":               "BestEffort",
	"settings.featureGates":                  "{nodeRepair: true}",
	"settings.awsFeatureGates":               "{nodeClassCEL: true}",
	"settings.schedulerConfig":               `"podTopologySpread: {}"`,
	"settings.cloudProvider":                 "kwok",
	"settings.clusterName":                   "other",
	"settings.clusterEndpoint":               "https://k8s.example.com",
	"settings.clusterCABundle":               "Y2E=",
	"settings.vmMemoryOverheadPercent":       "0.1",
	"settings.interruptionQueue":             "news",
	"settings.reservedENIs":                  `"1"`,
	"settings.amiRefreshInterval":            "2m",
	"settings.subnetRefreshInterval":         "3m",
	"settings.ignoreDRARequests":             "false",
	"settings.nominatePods":                  "true",
	"settings.provisioningRequests":          "true",
	"settings.evictionRequests":              "true",
	"settings.surgeFirstTimeout":             "10m",
	"settings.capacityBufferNamespaceLimits": "cpu=10",
	"settings.securityGroupRefreshInterval":  "4m",
	"settings.azure.location":                "westeurope",
	"settings.azure.subscriptionID":          "sub",
	"settings.azure.resourceGroup":           "shop",
	"settings.azure.nodeResourceGroup":       "MC_shop",
	"settings.azure.vnetSubnetID":            "/subscriptions/sub",
	"settings.azure.provisionMode":           "aksmachineapi",
	"settings.azure.machinesPoolName":        "machines",
	"settings.azure.sshPublicKey":            "ssh-rsa",
	"settings.azure.kubeletIdentityClientID": "id",
	"settings.azure.nodeIdentities":          "/id/a",
	"settings.azure.sigSubscriptionID":       "galleries",
	"settings.azure.networkPlugin":           "none",
	"settings.azure.additionalTags":          `"a=1"`,
	"settings.azure.cloud":                   "AzureChinaCloud",
}

// environment returns the variables the controller gets, as the chart writes
// them.
func environment(t *testing.T, values string) map[string]string {
	t.Helper()
	files, err := render(t, "karpenter", values)
	if err != nil {
		t.Fatalf("%s: %v", values, err)
	}
	var deployment struct {
		Spec struct {
			Template struct {
				Spec struct {
					Containers []struct {
						Env []struct{ Name, Value string }
					}
				}
			}
		}
	}
	if err := yaml.Unmarshal([]byte(files["deployment.yaml"]), &deployment); err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for _, e := range deployment.Spec.Template.Spec.Containers[0].Env {
		all[e.Name] = e.Value
	}
	return all
}

// valuesWith nests a value below the names of its path, beside the least the
// chart needs.
func valuesWith(path, value string) string {
	values := "{settings: {clusterName: demo}}"
	if path == "" {
		return values
	}
	names := strings.Split(path, ".")
	text := value
	for _, name := range slices.Backward(names) {
		text = fmt.Sprintf("{%s: %s}", name, text)
	}
	if names[0] == "settings" && path != "settings.clusterName" {
		return strings.Replace(text, "{settings: {", "{settings: {clusterName: demo, ", 1)
	} else if names[0] != "settings" {
		return "{settings: {clusterName: demo}, " + text[1:]
	}
	return text
}

// TestSettingsTable shows that each value of the chart in docs/settings.md sets
// the variable it stands beside, and that nothing but what stands there is set.
func TestSettingsTable(t *testing.T) {
	_, table, _ := strings.Cut(read(t, "../docs/settings.md"), "<!-- settings -->\n")
	table, gates, _ := strings.Cut(table, "<!-- end -->\n")
	documented := map[string]bool{"KUBERNETES_MIN_VERSION": true}
	usual := environment(t, valuesWith("", ""))
	tried := 0
	for _, cells := range row.FindAllStringSubmatch(table, -1) {
		value, prose, variable := cells[1], strings.TrimSpace(cells[2]), cells[3]
		documented[variable] = true
		_, isSet := usual[variable]
		if value == "" && isSet != (prose != "") {
			t.Errorf("%s: the chart sets it: %t; docs/settings.md: %q", variable, isSet, prose)
		}
		if value == "" || isSet && strings.HasPrefix(value, "controller.resources.") {
			continue // the latter is read by Kubernetes from the container
		}
		tried++
		to, ok := other[value]
		if !ok {
			to = "true"
		}
		changes(t, usual, valuesWith(value, to), variable)
	}
	if tried < 25 {
		t.Errorf("only %d values of the chart in docs/settings.md", tried)
	}
	for variable := range usual {
		if !documented[variable] {
			t.Errorf("the chart sets %s, which docs/settings.md does not know", variable)
		}
	}
	named := regexp.MustCompile("`(settings\\.\\w+\\.\\w+)`").FindAllStringSubmatch(gates, -1)
	if len(named) != 13 {
		t.Errorf("%d feature gates", len(named))
	}
	for _, name := range named {
		to, variable := "true", "FEATURE_GATES"
		if strings.HasSuffix(name[1], "reservedCapacity") {
			to = "false"
		}
		if strings.HasPrefix(name[1], "settings.aws") {
			variable = "AWS_FEATURE_GATES"
		}
		var also []string
		if strings.Contains(name[1], ".dra") {
			also = []string{"IGNORE_DRA_REQUESTS"}
		}
		changes(t, usual, valuesWith(name[1], to), variable, also...)
	}
}

// changes fails unless the values change just that variable, and perhaps the
// others given; another cloud has fewer.
func changes(t *testing.T, usual map[string]string, values, variable string, also ...string) {
	t.Helper()
	now := environment(t, values)
	for _, name := range slices.Sorted(maps.Keys(usual)) {
		if is, ok := now[name]; ok && is != usual[name] && name != variable && !slices.Contains(also, name) {
			t.Errorf("%s also changes %s", values, name)
		}
	}
	if before, ok := usual[variable]; now[variable] == before && (ok || now[variable] == "") {
		t.Errorf("%s does not change %s", values, variable)
	}
}

// TestOtherVariables does what docs/settings.md says of settings that no value of
// the chart is for.
func TestOtherVariables(t *testing.T) {
	given := map[string]any{"settings": map[string]any{"clusterName": "demo"}}
	_, command, _ := strings.Cut(read(t, "../docs/settings.md"), "in the chart, use `controller.env`:")
	arguments := strings.Fields(command)
	for i, argument := range arguments[:min(20, len(arguments))] {
		parse := map[string]func(string, map[string]any) error{"--set": strvals.ParseInto, "--set-string": strvals.ParseIntoString}[argument]
		if parse == nil {
			continue
		}
		if err := parse(arguments[i+1], given); err != nil {
			t.Fatal(err)
		}
	}
	values, err := yaml.Marshal(given)
	if err != nil {
		t.Fatal(err)
	}
	if got := environment(t, string(values))["KUBE_CLIENT_QPS"]; got != "400" {
		t.Errorf("KUBE_CLIENT_QPS is %q", got)
	}
}
