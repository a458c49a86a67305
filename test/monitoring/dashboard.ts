// The type of artifacts/monitoring/dashboard.json, for TestDashboardHasGrafanasTypes: what Grafana
// publishes, and of its plugins, the two panels and the data source that the dashboard uses.
import * as dashboard from '@grafana/grafana-foundation-sdk/dashboard';
import * as prometheus from '@grafana/grafana-foundation-sdk/prometheus';
import * as stat from '@grafana/grafana-foundation-sdk/stat';
import * as timeseries from '@grafana/grafana-foundation-sdk/timeseries';

// InJSON is T as it is in a file: enums are their values, and Grafana fills in what is absent.
type InJSON<T> = T extends string
  ? `${T}`
  : T extends object
    ? { [K in keyof T]?: InJSON<T[K]> }
    : T;

// Of, a panel of one type, has the options and queries of that type in place of anything.
type Of<Type extends string, Options, Custom> = Omit<
  InJSON<dashboard.Panel>,
  'type' | 'options' | 'fieldConfig' | 'targets'
> & {
  type: Type;
  options: InJSON<Options>;
  fieldConfig: {
    defaults: Omit<InJSON<dashboard.FieldConfig>, 'custom'> & { custom?: InJSON<Custom> };
    overrides: [];
  };
  targets: InJSON<prometheus.Dataquery>[];
};

export type Dashboard = Omit<InJSON<dashboard.Dashboard>, 'panels'> & {
  panels: (Of<'stat', stat.Options, never> | Of<'timeseries', timeseries.Options, timeseries.FieldConfig>)[];
};
