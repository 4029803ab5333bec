"""imports, what failed of them, and which conversations each made"""

from alembic import op
import sqlalchemy as sa


revision = '0005'
down_revision = '0004'
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table('imports',
    sa.Column('id', sa.UUID(), nullable=False),
    sa.Column('principal_id', sa.UUID(), nullable=False),
    sa.Column('kind', sa.Text(), nullable=False),
    sa.Column('state', sa.Text(), nullable=False),
    sa.Column('file_name', sa.Text(), nullable=False),
    sa.Column('size', sa.BigInteger(), nullable=False),
    sa.Column('upload', sa.UUID(), nullable=True),
    sa.Column('format', sa.Text(), nullable=True),
    sa.Column('again', sa.Boolean(), nullable=False),
    sa.Column('position', sa.BigInteger(), nullable=False),
    sa.Column('length', sa.BigInteger(), nullable=False),
    sa.Column('total', sa.Integer(), nullable=False),
    sa.Column('imported', sa.Integer(), nullable=False),
    sa.Column('created', sa.Integer(), nullable=False),
    sa.Column('already_there', sa.Integer(), nullable=False),
    sa.Column('skipped', sa.Integer(), nullable=False),
    sa.Column('failed', sa.Integer(), nullable=False),
    sa.Column('replaced', sa.Integer(), nullable=False),
    sa.Column('files_left', sa.Integer(), nullable=False),
    sa.Column('to_remove', sa.Integer(), nullable=False),
    sa.Column('removed', sa.Integer(), nullable=False),
    sa.Column('error', sa.Text(), nullable=True),
    sa.Column('cancel_requested', sa.Boolean(), nullable=False),
    sa.Column('attempts', sa.Integer(), nullable=False),
    sa.Column('lease_id', sa.UUID(), nullable=True),
    sa.Column('lease_until', sa.DateTime(timezone=True), nullable=False),
    sa.Column('created_at', sa.DateTime(timezone=True), nullable=False),
    sa.Column('started_at', sa.DateTime(timezone=True), nullable=True),
    sa.Column('ended_at', sa.DateTime(timezone=True), nullable=True),
    sa.ForeignKeyConstraint(['principal_id'], ['principals.id'], name=op.f('fk_imports_principal_id')),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_imports'))
    )
    op.create_index('ix_imports_order', 'imports', ['principal_id', 'id'], unique=False)
    op.create_index('ix_imports_working', 'imports', ['lease_until'], unique=False,
    postgresql_where=sa.text("state IN ('queued', 'running', 'undoing')"))
    op.create_table('import_failures',
    sa.Column('import_id', sa.UUID(), nullable=False),
    sa.Column('number', sa.Integer(), nullable=False),
    sa.Column('session_id', sa.UUID(), nullable=True),
    sa.Column('conversation', sa.Text(), nullable=False),
    sa.Column('reason', sa.Text(), nullable=False),
    sa.ForeignKeyConstraint(['import_id'], ['imports.id'], name=op.f('fk_import_failures_import_id')),
    sa.PrimaryKeyConstraint('import_id', 'number', name=op.f('pk_import_failures'))
    )
    op.create_index(op.f('ix_import_failures_session_id'), 'import_failures', ['session_id'], unique=False)
    op.add_column('sessions', sa.Column('import_id', sa.UUID(), nullable=True))
    op.add_column('sessions', sa.Column('import_seq', sa.BigInteger(), nullable=True))
    op.create_index('ix_sessions_import_id', 'sessions', ['import_id'], unique=False,
    postgresql_where=sa.text('import_id IS NOT NULL'))


def downgrade() -> None:
    op.drop_index('ix_sessions_import_id', table_name='sessions')
    op.drop_column('sessions', 'import_seq')
    op.drop_column('sessions', 'import_id')
    op.drop_table('import_failures')
    op.drop_table('imports')
