// The code that the specification prints, as it stands but for the import line. Compiled strictly and never run.

import type { AtomicTask, ScenarioTask, ScoreRecord, TaskEvent as TraceEvent } from "assize"

const intentTask: AtomicTask = {
  id: 'task-001',
  name: '识别订票意图',
  type: 'intent',
  input: '我想订一张明天去北京的机票',
  expected: {
    intent: 'book_flight',
    confidence: 0.9
  },
  metadata: {
    tags: ['intent', 'booking'],
    priority: 1,
    timeout: 5000
  }
}

const multiTurnScenario: ScenarioTask = {
  id: 'scenario-001',
  name: '多轮对话订票流程',
  description: '测试意图识别 → 对话管理 → 记忆存储的完整链路',
  steps: [
    {
      id: 'step-1',
      name: 'recognize_intent',
      type: 'intent',
      input: '我想订机票',
      expected: { intent: 'book_flight' },
      metadata: {}
    },
    {
      id: 'step-2',
      name: 'manage_dialogue',
      type: 'dialogue',
      input: {
        intent: null,  // 将从 step-1 注入
        message: '请问您要去哪里？'
      },
      metadata: {}
    },
    {
      id: 'step-3',
      name: 'store_memory',
      type: 'memory',
      input: {
        conversation: null  // 将从 step-2 注入
      },
      metadata: {}
    }
  ],
  input_map: {
    'step-2': [
      { from: 'step:step-1.output.intent', to: 'input.intent' }
    ],
    'step-3': [
      { from: 'step:step-2.output.conversation', to: 'input.conversation' }
    ]
  },
  metadata: {}
}

const trace: TraceEvent[] = [
  {
    timestamp: new Date('2024-01-01T10:00:00Z'),
    level: 'info',
    event: 'started'
  },
  {
    timestamp: new Date('2024-01-01T10:00:01Z'),
    level: 'debug',
    event: 'llm_call',
    data: { model: 'gpt-4', prompt: '...' }
  },
  {
    timestamp: new Date('2024-01-01T10:00:02Z'),
    level: 'info',
    event: 'completed',
    data: { output: { intent: 'book_flight' } }
  }
]

const scores: ScoreRecord[] = [
  {
    id: 'score-001',
    runId: 'run-123',
    metric: 'accuracy',
    value: 0.95,
    target: 'final',
    evidence: {
      explanation: '输出意图与期望意图匹配',
      snippets: ['expected: book_flight', 'actual: book_flight']
    },
    evaluatorId: 'intent.metrics',
    createdAt: new Date()
  },
  {
    id: 'score-002',
    runId: 'run-123',
    metric: 'latency',
    value: 234,
    target: 'global',
    evaluatorId: 'intent.metrics',
    createdAt: new Date()
  }
]

export { intentTask, multiTurnScenario, scores, trace }
